//! Where a daemon learns how strong others come in, and how busy its channel is: `--signal`.

use std::str::FromStr;

use node_lib::device::signal::SignalSource;
use node_lib::device::{DeviceError, Problem, name};
use tracing::info;

use crate::args::Bind;
use crate::exit::Failure;
use crate::exit::print;
use crate::findings::Findings;

/// What `--signal` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// nl80211 if the radio is an interface of an 802.11 driver, else none.
    Auto,
    /// None.
    Off,
    /// Station statistics of the driver of this interface; without one, of the radio.
    Nl80211(Option<String>),
    /// A monitor interface.
    Radiotap(String),
}

impl FromStr for Signal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let interface = |text: &str| {
            name::check(text).map_err(|error| error.source.to_string())?;
            Ok::<_, String>(text.to_owned())
        };
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "off" => Ok(Self::Off),
            None if text == "nl80211" => Ok(Self::Nl80211(None)),
            Some(("nl80211", of)) => interface(of).map(Some).map(Self::Nl80211),
            Some(("radiotap", of)) => interface(of).map(Self::Radiotap),
            _ => Err("expected auto, off, nl80211[:IFACE] or radiotap:IFACE".to_owned()),
        }
    }
}

/// What an RSU takes: it wants to know how busy its channel is.
///
/// # Errors
/// What else it may be.
pub fn of_channel(text: &str) -> Result<Signal, String> {
    match text.parse() {
        Ok(Signal::Radiotap(_)) => {
            Err("expected auto, off or nl80211[:IFACE]: a monitor interface \
                                        does not tell how busy its channel is"
                .to_owned())
        }
        Err(_) if !text.contains(':') => Err("expected auto, off or nl80211[:IFACE]".to_owned()),
        parsed => parsed,
    }
}

/// What a daemon asks for: how the log and `--check` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// How strong others come in.
    Strength,
    /// How busy the channel is.
    Channel,
}

impl Measured {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Strength => "signal strength",
            Self::Channel => "how busy the channel is",
        }
    }

    /// The 802.11 driver of this interface, to be asked for it.
    async fn of(self, interface: &str) -> Result<SignalSource, DeviceError> {
        match self {
            Self::Strength => SignalSource::nl80211(interface).await,
            Self::Channel => SignalSource::channel(interface).await,
        }
    }
}

/// Opens what `--signal` says for this radio, and changes nothing. `Some(None)`: what is asked for
/// is not told. `None`: a source that was named cannot be used, or it is that of a radio that
/// cannot. `auto` is never wrong; it says in the log why there is none.
pub async fn open(
    signal: &Signal,
    measured: Measured,
    bind: &Bind,
    findings: &mut Findings<'_>,
) -> Option<Option<SignalSource>> {
    if matches!(signal, Signal::Auto | Signal::Nl80211(None)) && findings.has("bind") {
        return None;
    }
    findings.about("signal", source(signal, measured, bind).await)
}

async fn source(
    signal: &Signal,
    measured: Measured,
    bind: &Bind,
) -> Result<Option<SignalSource>, Failure> {
    let opened = match (signal, bind) {
        (Signal::Off, _) => return Ok(None),
        (Signal::Auto, Bind::Udp(_)) => return Ok(None),
        (Signal::Auto, Bind::Interface(radio)) => {
            return Ok(match measured.of(radio).await {
                Ok(source) => Some(source),
                Err(error) => {
                    let what = measured.as_str();
                    info!(%radio, what, cause = %error.source, "the radio does not tell");
                    None
                }
            });
        }
        (Signal::Nl80211(Some(of)), _) => measured.of(of).await,
        (Signal::Nl80211(None), Bind::Interface(radio)) => measured.of(radio).await,
        (Signal::Nl80211(None), Bind::Udp(group)) => Err(DeviceError {
            interface: group.to_string(),
            operation: "ask for the signal of stations",
            source: Problem::NoStationStatistics("a multicast group has no radio".to_owned()),
        }),
        (Signal::Radiotap(monitor), _) => SignalSource::radiotap(monitor),
    };
    opened.map(Some).map_err(Failure::from)
}

/// Tells the user of `--check` what would be used.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print_checked(measured: Measured, source: Option<&SignalSource>) -> Result<(), Failure> {
    let source = source.map_or_else(|| "not told".to_owned(), SignalSource::name);
    print(&format!("{}: {source}\n", measured.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_word_with_an_interface_where_it_needs_one() {
        let parsed = |text: &str| text.parse::<Signal>();
        assert_eq!(parsed("auto"), Ok(Signal::Auto));
        assert_eq!(parsed("off"), Ok(Signal::Off));
        assert_eq!(parsed("nl80211"), Ok(Signal::Nl80211(None)));
        assert_eq!(parsed("nl80211:wlan0"), Ok(Signal::Nl80211(Some("wlan0".into()))));
        assert_eq!(parsed("radiotap:mon0"), Ok(Signal::Radiotap("mon0".into())));
        for bad in ["", "on", "radiotap", "auto:wlan0", "wlan0", "rssi:wlan0"] {
            let said = parsed(bad).unwrap_err();
            assert!(said.contains("radiotap:IFACE"), "{bad}: {said}");
        }
        assert_eq!(of_channel("nl80211:wlan0"), parsed("nl80211:wlan0"));
        assert!(of_channel("radiotap:mon0").unwrap_err().contains("how busy"));
        assert!(!of_channel("on").unwrap_err().contains("radiotap"));
        assert!(parsed("radiotap:").unwrap_err().contains("1 to 15"));
        assert!(parsed("nl80211:a/b").unwrap_err().contains("'/'"));
    }
}
