//! Recordings for people: one JSON object a line, the header first. Bytes are in hexadecimal.
//!
//! A file of this form is read wherever one of blocks is; its name ends in `.jsonl`.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::LinkEvent;
use node_lib::control::pin::Pin;
use node_lib::control::ping::Ping;
use node_lib::control::positions::Located;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::position::Coordinates;
use node_lib::start::clients::Remembered;
use node_lib::{Mac, NodeId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::event::{self, Value};
use crate::header::RecordingHeader;
use crate::record::{Frame, Record, What};
use crate::text;

/// How the names of files in this form end.
pub const EXTENSION: &str = "jsonl";

/// Why a line is no record.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is no JSON, or not of a record.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Something a record of this name needs is missing or makes no sense.
    #[error("a record \"{record}\" needs {needs}")]
    Needs {
        /// Its name.
        record: String,
        /// What it needs.
        needs: &'static str,
    },
    /// There is no such record.
    #[error("there is no record \"{0}\"")]
    Name(String),
}

/// One line, whatever it is.
#[derive(Debug)]
pub enum Line {
    /// The first.
    Header(Box<RecordingHeader>),
    /// So many blocks are missing here.
    Gap(u64),
    /// A record.
    Record(Record<'static>),
}

/// What may stand in a line.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<Box<RecordingHeader>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_us: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    record: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    len: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dbm: Option<i8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vlan: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    obu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hop_limit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latitude_e7: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longitude_e7: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy_dm: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_fixed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Map<String, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clients: Option<Vec<ClientFields>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientFields {
    mac: String,
    vlan: u16,
    silent_us: u64,
}

impl From<&Remembered> for ClientFields {
    fn from(Remembered { client, silent_for }: &Remembered) -> Self {
        let silent_us = u64::try_from(silent_for.as_micros()).unwrap_or(u64::MAX);
        Self { mac: client.mac.to_string(), vlan: client.vlan, silent_us }
    }
}

impl ClientFields {
    fn remembered(&self) -> Option<Remembered> {
        let client = Client { vlan: self.vlan, mac: mac(Some(&self.mac))? };
        Some(Remembered { client, silent_for: Duration::from_micros(self.silent_us) })
    }
}

fn put(out: &mut impl Write, fields: &Fields<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, fields)?;
    out.write_all(b"\n")
}

/// Writes the first line.
pub fn write_header(out: &mut impl Write, header: &RecordingHeader) -> io::Result<()> {
    put(out, &Fields { header: Some(Box::new(header.clone())), ..Fields::default() })
}

/// Writes that so many blocks are missing here.
pub fn write_gap(out: &mut impl Write, blocks: u64) -> io::Result<()> {
    put(out, &Fields { gap: Some(blocks), ..Fields::default() })
}

/// Writes a record.
pub fn write_record(out: &mut impl Write, record: &Record<'_>) -> io::Result<()> {
    let mut fields = Fields {
        at_us: Some(record.at.as_micros()),
        record: Some(record.what.name().into()),
        ..Fields::default()
    };
    if let Some(Frame { len, bytes }) = record.what.frame() {
        fields.len = Some(*len);
        fields.data = Some(text::hex(bytes).into());
    }
    match &record.what {
        What::Signal { from, dbm } => {
            fields.from = Some(from.to_string());
            fields.dbm = Some(*dbm);
        }
        What::Link(event) => describe_link(*event, &mut fields),
        What::Event(event) => {
            let (shape, values) = event::take_apart(event);
            fields.event = Some(shape.name.into());
            let named = shape.fields.iter().zip(&values);
            fields.values =
                Some(named.map(|(name, value)| ((*name).to_owned(), json(value))).collect());
        }
        What::Mark(text) => fields.text = Some(Cow::Borrowed(text)),
        What::Lost(count) => fields.count = Some(*count),
        What::Clients(clients) => {
            fields.clients = Some(clients.iter().map(ClientFields::from).collect());
        }
        What::ForgetClients(which) => fields.mac = which.map(|mac| mac.to_string()),
        What::Pin(Pin::Take(which)) => fields.mac = which.map(|mac| mac.to_string()),
        What::Pin(Pin::Put { client, obu }) => {
            (fields.mac, fields.vlan) = (Some(client.mac.to_string()), Some(client.vlan));
            fields.obu = Some(obu.to_string());
        }
        What::Ping(Ping { target, hop_limit, nonce }) => {
            fields.mac = Some(target.to_string());
            (fields.hop_limit, fields.nonce) = (Some(*hop_limit), Some(*nonce));
        }
        What::Position(Some(Located { at, is_fixed })) => {
            fields.latitude_e7 = Some(at.latitude_e7());
            fields.longitude_e7 = Some(at.longitude_e7());
            (fields.accuracy_dm, fields.is_fixed) = (at.accuracy_dm(), Some(*is_fixed));
        }
        _ => {}
    }
    put(out, &fields)
}

fn json(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Uint(value) => (*value).into(),
        Value::Mac(mac) => mac.to_string().into(),
        Value::Word(word) => (*word).into(),
    }
}

const LINK_CHANGES: [(LinkEvent, &str); 4] = [
    (LinkEvent::Up, "up"),
    (LinkEvent::Down, "down"),
    (LinkEvent::LanUp, "lan_up"),
    (LinkEvent::LanDown, "lan_down"),
];

fn describe_link(event: LinkEvent, fields: &mut Fields<'_>) {
    let change = match event {
        LinkEvent::AddressChanged(mac) => {
            fields.mac = Some(mac.to_string());
            "address"
        }
        LinkEvent::MtuChanged(mtu) => {
            fields.mtu = Some(mtu);
            "mtu"
        }
        LinkEvent::ChannelBusy(percent) => {
            fields.busy_percent = Some(percent);
            "channel_busy"
        }
        other => {
            LINK_CHANGES.iter().find(|(event, _)| *event == other).map_or("", |(_, name)| name)
        }
    };
    fields.change = Some(change.into());
}

/// Reads one line.
pub fn parse(line: &str) -> Result<Line, LineError> {
    let mut fields: Fields<'_> = serde_json::from_str(line)?;
    if let Some(header) = fields.header {
        return Ok(Line::Header(header));
    }
    if let Some(blocks) = fields.gap {
        return Ok(Line::Gap(blocks));
    }
    let name = fields.record.take().unwrap_or_default();
    let needs = |needs| LineError::Needs { record: name.clone().into_owned(), needs };
    let at = Timestamp::from_micros(fields.at_us.ok_or_else(|| needs("at_us"))?);
    let frame = |fields: &Fields<'_>| {
        let bytes = fields.data.as_deref().and_then(text::from_hex);
        let bytes = bytes.ok_or_else(|| needs("data in hexadecimal"))?;
        let len = fields.len.filter(|len| *len as usize >= bytes.len());
        let len = len.ok_or_else(|| needs("len, at least as long as data"))?;
        Ok::<_, LineError>(Frame { len, bytes: Cow::Owned(bytes) })
    };
    let what = match &*name {
        "from_radio" => What::FromRadio(frame(&fields)?),
        "from_tap" => What::FromTap(frame(&fields)?),
        "from_tap_late" => What::FromTapLate(frame(&fields)?),
        "unacknowledged" => What::Unacknowledged(frame(&fields)?),
        "to_radio" => What::ToRadio(frame(&fields)?),
        "to_tap" => What::ToTap(frame(&fields)?),
        "signal" => What::Signal {
            from: mac(fields.from.as_deref()).ok_or_else(|| needs("from, a MAC"))?,
            dbm: fields.dbm.ok_or_else(|| needs("dbm"))?,
        },
        "link" => What::Link(
            link(&fields).ok_or_else(|| needs("a change, with its mac, mtu or busy_percent"))?,
        ),
        "timeout" => What::Timeout,
        "shutdown" => What::Shutdown,
        "clients" => {
            let clients = fields.clients.as_deref().unwrap_or_default();
            let clients: Option<Vec<_>> = clients.iter().map(ClientFields::remembered).collect();
            What::Clients(clients.ok_or_else(|| needs("clients with MACs"))?.into())
        }
        "forget_clients" => {
            let which = fields.mac.as_deref();
            let which = which.map(|text| mac(Some(text)).ok_or_else(|| needs("mac, or none: all")));
            What::ForgetClients(which.transpose()?)
        }
        "pin" => {
            let which = fields.mac.as_deref().map(|text| mac(Some(text)));
            let which =
                which.map(|mac| mac.ok_or_else(|| needs("mac, or none: all"))).transpose()?;
            What::Pin(match (which, fields.obu.as_deref()) {
                (which, None) => Pin::Take(which),
                (Some(client), Some(obu)) => Pin::Put {
                    client: Client { vlan: fields.vlan.unwrap_or_default(), mac: client },
                    obu: NodeId(mac(Some(obu)).ok_or_else(|| needs("obu, an id"))?.0),
                },
                (None, Some(_)) => return Err(needs("mac, the client")),
            })
        }
        "ping" => What::Ping(Ping {
            target: mac(fields.mac.as_deref()).ok_or_else(|| needs("mac"))?,
            hop_limit: fields.hop_limit.ok_or_else(|| needs("hop_limit"))?,
            nonce: fields.nonce.ok_or_else(|| needs("nonce"))?,
        }),
        "position" => {
            let needs = || needs("a place on Earth and is_fixed, or nothing: not known");
            What::Position(located(&fields).map_err(|()| needs())?)
        }
        "event" => {
            What::Event(event_of(&fields).ok_or_else(|| needs("an event and all its values"))?)
        }
        "mark" => {
            let text = fields.text.ok_or_else(|| needs("text"))?;
            What::Mark(Cow::Owned(text.into_owned()))
        }
        "lost" => What::Lost(fields.count.ok_or_else(|| needs("count"))?),
        _ => return Err(LineError::Name(name.into_owned())),
    };
    Ok(Line::Record(Record { at, what }))
}

fn mac(text: Option<&str>) -> Option<Mac> {
    text?.parse().ok()
}

/// Where the node is; an error if it is no place.
fn located(fields: &Fields<'_>) -> Result<Option<Located>, ()> {
    match (fields.latitude_e7, fields.longitude_e7, fields.is_fixed) {
        (None, None, None) => Ok(None),
        (Some(latitude), Some(longitude), Some(is_fixed)) => {
            let at = Coordinates::from_units(latitude, longitude, fields.accuracy_dm).ok_or(())?;
            Ok(Some(Located { at, is_fixed }))
        }
        _ => Err(()),
    }
}

fn link(fields: &Fields<'_>) -> Option<LinkEvent> {
    match fields.change.as_deref()? {
        "address" => Some(LinkEvent::AddressChanged(mac(fields.mac.as_deref())?)),
        "mtu" => Some(LinkEvent::MtuChanged(fields.mtu?)),
        "channel_busy" => Some(LinkEvent::ChannelBusy(fields.busy_percent?)),
        name => LINK_CHANGES.iter().find(|(_, known)| *known == name).map(|(event, _)| *event),
    }
}

fn event_of(fields: &Fields<'_>) -> Option<Event> {
    let shape = event::shape_named(fields.event.as_deref()?)?;
    let named = fields.values.as_ref()?;
    let mut values = event::Values::new();
    for name in shape.fields {
        let value = match named.get(*name)? {
            Json::Null => Value::Nil,
            Json::Number(value) => Value::Uint(value.as_u64()?),
            Json::String(text) => match event::word(text) {
                Some(word) => Value::Word(word),
                None => Value::Mac(mac(Some(text))?),
            },
            _ => return None,
        };
        values.try_push(value).ok()?;
    }
    event::put_together(shape.code, &values)
}

/// The longest line anybody reads: a frame of 64 KiB in hexadecimal, and room to spare.
const LINE_MAX: u64 = 1 << 20;

/// Reads a line into `buffer`. `None` at the end; an error if it is longer than any record.
pub(crate) fn next_line<'a>(
    input: &mut impl BufRead,
    buffer: &'a mut Vec<u8>,
) -> io::Result<Option<&'a [u8]>> {
    use io::Read as _;
    buffer.clear();
    if input.by_ref().take(LINE_MAX).read_until(b'\n', buffer)? == 0 {
        return Ok(None);
    }
    if buffer.len() as u64 == LINE_MAX && buffer.last() != Some(&b'\n') {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line of more than 1 MiB"));
    }
    Ok(Some(buffer))
}
