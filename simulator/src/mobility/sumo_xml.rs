//! Floating-car data of Eclipse SUMO as XML (`--fcd-output file.xml`).
//!
//! ```xml
//! <fcd-export>
//!     <timestep time="0.00">
//!         <vehicle id="0" x="87.70" y="1.60" angle="270.00" type="…" speed="13.89" …/>
//!     </timestep>
//! </fcd-export>
//! ```
//!
//! Read are `time` in seconds, `id`, and `x`, `y` in metres of SUMO's plane; so do not export with
//! `--fcd-output.geo`. Persons and containers are passed over.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use node_lib::Timestamp;
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

use super::error::MobilityErrorKind;
use super::table::later_than;
use super::{Movement, Point, Recorder, Waypoint, metres, seconds};

pub(super) fn read(file: impl Read) -> Result<Movement, MobilityErrorKind> {
    let line = Rc::new(Cell::new(1));
    let mut reader = Reader::from_reader(Lines { inner: BufReader::new(file), line: line.clone() });
    let mut recorder = Recorder::default();
    let mut root_seen = false;
    let mut step: Option<Timestamp> = None;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let element = match event {
            Ok(Event::Start(element) | Event::Empty(element)) => element,
            Ok(Event::End(element)) => {
                if element.name().as_ref() == "timestep" {
                    step = None;
                }
                continue;
            }
            Ok(Event::Eof) => break,
            Ok(_) => continue,
            Err(quick_xml::Error::Io(error)) => {
                return Err(MobilityErrorKind::Read(io::Error::new(
                    error.kind(),
                    error.to_string(),
                )));
            }
            Err(error) => {
                return Err(MobilityErrorKind::malformed(
                    line.get(),
                    error.to_string(),
                    "well-formed XML",
                ));
            }
        };
        let here = Element { element: &element, line: line.get() };
        match element.name().as_ref() {
            "fcd-export" => root_seen = true,
            _ if !root_seen => {
                let name = element.name().as_ref().to_owned();
                return Err(MobilityErrorKind::malformed(
                    line.get(),
                    format!("<{name}>"),
                    "<fcd-export>",
                ));
            }
            "timestep" => step = Some(here.number("time", "seconds, 0 or more", seconds)?),
            "vehicle" => {
                let Some(time) = step else {
                    return Err(MobilityErrorKind::malformed(
                        line.get(),
                        "<vehicle> outside of a time step",
                        "<timestep time=\"…\"> around it",
                    ));
                };
                let name = here.text("id", "the name of a vehicle")?;
                let x_m = here.number("x", "metres, a number", metres)?;
                let y_m = here.number("y", "metres, a number", metres)?;
                let waypoint = Waypoint { time, at: Point::new(x_m, y_m) };
                recorder.add(&name, waypoint).map_err(|before| {
                    MobilityErrorKind::malformed(
                        line.get(),
                        format!("time {time}"),
                        later_than(&name, before),
                    )
                })?;
            }
            _ => {}
        }
    }
    let movement = recorder.finish();
    if movement.vehicles.is_empty() {
        return Err(MobilityErrorKind::Empty {
            expected: "<timestep> with <vehicle> in <fcd-export>",
        });
    }
    Ok(movement)
}

/// An element and where it stands.
struct Element<'a> {
    element: &'a BytesStart<'a>,
    line: u64,
}

impl Element<'_> {
    fn text(&self, attribute: &str, expected: &str) -> Result<String, MobilityErrorKind> {
        let name = self.element.name().as_ref().to_owned();
        let missing = |found| {
            MobilityErrorKind::malformed(self.line, found, format!("{attribute}: {expected}"))
        };
        let found = self
            .element
            .try_get_attribute(attribute)
            .map_err(|error| missing(format!("<{name}>: {error}")))?
            .ok_or_else(|| missing(format!("<{name}> without {attribute}")))?;
        let text = found
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| missing(format!("<{name} {attribute}>: {error}")))?;
        if text.is_empty() {
            return Err(missing(format!("<{name} {attribute}=\"\">")));
        }
        Ok(text.into_owned())
    }

    fn number<T>(
        &self,
        attribute: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, MobilityErrorKind> {
        let text = self.text(attribute, expected)?;
        parse(&text).ok_or_else(|| {
            MobilityErrorKind::malformed(self.line, format!("{attribute} \"{text}\""), expected)
        })
    }
}

/// Counts the lines read so far.
struct Lines<R> {
    inner: R,
    line: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(out)?;
        self.count(out.get(..len).unwrap_or_default());
        Ok(len)
    }
}

impl<R: BufRead> BufRead for Lines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        if let Ok(bytes) = self.inner.fill_buf() {
            let lines = newlines(bytes.get(..len).unwrap_or_default());
            self.line.set(self.line.get() + lines);
        }
        self.inner.consume(len);
    }
}

impl<R> Lines<R> {
    fn count(&self, bytes: &[u8]) {
        self.line.set(self.line.get() + newlines(bytes));
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
