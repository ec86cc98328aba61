//! What the user typed: the flags both daemons have, and how they are read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{BoolishValueParser, RangedU64ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Parser, ValueEnum};
use control_socket::message::{Origin, Setting};
use control_socket::path;
use node_lib::device::netlink::TapAddress;
use node_lib::device::udp::UdpAddress;
use node_lib::device::{name, tap};
use node_lib::messages::ETHERTYPE_DEFAULT;
use node_lib::messages::ethernet::{ARP, C_TAG, IPV4, IPV6};
use node_lib::settings::{self, LoopSettings};
use node_lib::transport::mtu;
use node_lib::{Mac, NodeId};
use recorder::tape::SNAP_MIN;

use crate::exit::print;
use crate::findings::Places;
use crate::http::address::HttpAddress;
use crate::log_filter::filter;
use crate::position::PositionSource;
use crate::{Role, config, exit, variables};

/// Flags of both daemons.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Interface to reach other nodes through; or udp:GROUP:PORT, a multicast group
    /// that stands for a radio when there is none
    #[arg(short, long, value_name = "IFACE", value_parser = Bind::from_str)]
    pub bind: Bind,

    /// Name of the TAP to create, or to attach to if it is persistent
    #[arg(short, long, value_name = "NAME", value_parser = interface_name)]
    pub tap_name: String,

    /// Address of the TAP, IPv4 (default prefix /24) or IPv6 (/64); may be repeated
    #[arg(short, long, value_name = "ADDR[/PREFIX]", value_delimiter = ',')]
    pub ip: Vec<TapAddress>,

    /// MAC of the TAP; by default made from the node id, and that of a TAP that is there already
    /// kept
    #[arg(long, value_name = "MAC", value_parser = unicast)]
    pub tap_mac: Option<Mac>,

    /// Bridge to put the TAP into, and to keep it in
    #[arg(long, value_name = "NAME", value_parser = interface_name)]
    pub bridge: Option<String>,

    /// MTU of the TAP, like that of the hosts beside it; 1500 unless set. The radio's may be
    /// smaller
    #[arg(short, long, value_name = "N",
        value_parser = RangedU64ValueParser::<usize>::new()
            .range(mtu::TAP_MTU_MIN as u64..=mtu::TAP_MTU_MAX as u64))]
    pub mtu: Option<usize>,

    /// Whether clients hear of packets that take two frames of the radio (ICMP, ICMPv6), as from a
    /// router, instead of having them carried in fragments
    #[arg(long, value_name = "WHEN", default_value = "off")]
    pub pmtu_discovery: PmtuDiscovery,

    /// Whether TCP crosses the TAP in super-frames of up to 64 KiB
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub tap_offload: OffloadMode,

    /// Whether small frames that wait for the same neighbour leave in one
    #[arg(long, value_name = "WHEN", default_value_t = LoopSettings::DEFAULT.bundles.into())]
    pub bundles: Bundles,

    /// Microseconds to let frames gather while there is traffic, 0 to 1000; 0: take the first at
    /// once
    #[arg(long, value_name = "USECS", default_value_t = micros(LoopSettings::DEFAULT.coalesce),
        value_parser = RangedU64ValueParser::<u64>::new().range(settings::WAIT_RANGE_US))]
    pub coalesce: u64,

    /// Microseconds to look for the answer to a frame before going to sleep, 0 to 1000; only
    /// where answers have come that fast lately
    #[arg(long, value_name = "USECS", default_value_t = micros(LoopSettings::DEFAULT.busy_poll),
        value_parser = RangedU64ValueParser::<u64>::new().range(settings::WAIT_RANGE_US))]
    pub busy_poll: u64,

    /// EtherType of our frames, decimal or 0x…: the same on all nodes
    #[arg(long, value_name = "N", default_value = hex(ETHERTYPE_DEFAULT), value_parser = ethertype)]
    pub ethertype: u16,

    /// Heartbeats over which a link is judged, 1 to 64
    #[arg(long, value_name = "N", default_value_t = settings::HELLO_HISTORY,
        value_parser = RangedU64ValueParser::<usize>::new().range(settings::HELLO_HISTORY_RANGE))]
    pub hello_history: usize,

    /// Identity of this node; by default the MAC of the radio
    #[arg(long, value_name = "MAC", value_parser = node_id)]
    pub node_id: Option<NodeId>,

    /// File to count starts in; without one, the time of day tells one start from the next
    #[arg(long, value_name = "PATH")]
    pub state_file: Option<PathBuf>,

    /// Control socket, to look inside with v2xctl; a second one beside it, .rw.sock, to change as
    /// well. By default /run/v2x/NAME.sock, NAME being that of the TAP, if it can be made
    #[arg(long, value_name = "PATH", value_parser = socket_path)]
    pub control: Option<PathBuf>,

    /// No control socket
    #[arg(long, value_parser = BoolishValueParser::new(), conflicts_with = "control")]
    pub no_control: bool,

    /// Port of a web page, metrics and JSON about this node, to look only: on this machine, or with
    /// an address for others as well. Off by default
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub http: Option<HttpAddress>,

    /// Where the node is, to be shown: degrees and metres (WGS 84), gpsd://HOST:PORT (by default
    /// 127.0.0.1:2947), or file:PATH, which plays once what a gpsd said. Not known by default
    #[arg(long, value_name = "LAT,LON[,ALT]", allow_hyphen_values = true,
        value_parser = PositionSource::from_str)]
    pub position: Option<PositionSource>,

    /// Tell everybody in radio range where the node is, once a second and in the clear, for them to
    /// show. Off by default
    #[arg(long, value_parser = BoolishValueParser::new())]
    pub share_position: bool,

    /// What of the node is recorded, and where
    #[command(flatten)]
    pub record: RecordOptions,

    /// What to log: off, error, warn, info, debug or trace, also per module (info,node_lib=debug)
    #[arg(long, value_name = "FILTER", default_value = "info", value_parser = log_filter)]
    pub log: String,

    /// How log lines look
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// File with settings in TOML, one key for each flag, with _ for -; flags and variables win
    /// over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Say what each setting is and where it comes from, and exit
    #[arg(long, value_parser = BoolishValueParser::new())]
    pub show_config: bool,

    /// Check flags, capabilities and interfaces, and exit without changing anything
    #[arg(long, value_parser = BoolishValueParser::new())]
    pub check: bool,
}

impl Common {
    /// What the loop that drives the node is told.
    pub fn loop_settings(&self) -> LoopSettings {
        LoopSettings {
            bundles: self.bundles == Bundles::On,
            coalesce: Duration::from_micros(self.coalesce),
            busy_poll: Duration::from_micros(self.busy_poll),
        }
    }
}

/// Headers and some of what they carry. What whole frames cost is in docs/performance.md.
const RECORD_SNAP: u32 = 128;

/// Flags of the flight recorder.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct RecordOptions {
    /// Directory to record into all that goes into the node and comes out of it, clients' frames
    /// among it; by default nothing is recorded
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// MiB the recordings of this node may take; the oldest go. What is kept of fail-overs may take
    /// as much again
    #[arg(long, value_name = "MIB", default_value_t = 256,
        value_parser = RangedU64ValueParser::<u64>::new().range(1..=1 << 20))]
    pub record_size: u64,

    /// Seconds after which a recording goes, 0: not because of its age
    #[arg(long, value_name = "SECS", default_value_t = 0,
        value_parser = RangedU64ValueParser::<u64>::new().range(0..=31_536_000))]
    pub record_age: u64,

    /// Bytes that are recorded of a client's frame that is only passed on, at least 96; 0: all of
    /// them. All other frames are recorded whole, and a replay does not need the rest
    #[arg(long, value_name = "BYTES", default_value_t = RECORD_SNAP, value_parser = snap)]
    pub record_snap: u32,
}

fn snap(text: &str) -> Result<u32, String> {
    let snap = text.parse().ok().filter(|snap| matches!(snap, 0 | SNAP_MIN..=SNAP_MAX));
    snap.ok_or_else(|| format!("expected 0 or {SNAP_MIN} to {SNAP_MAX}"))
}

/// No frame is longer.
const SNAP_MAX: u32 = 65_535;

/// As `--coalesce` and `--busy-poll` have it.
fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// As `--ethertype` has it.
fn hex(ethertype: u16) -> String {
    format!("{ethertype:#06x}")
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Whether clients hear of packets that are too long for one frame of the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PmtuDiscovery {
    /// Yes: IPv4 with "don't fragment", and IPv6. What nobody can be told of goes in fragments.
    On,
    /// No: whatever fragments carry is carried.
    Off,
}

/// Whether small frames leave in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bundles {
    /// Yes. Nothing waits for it: only what is there together goes together.
    On,
    /// No: each in a frame of its own. What others bundle is understood all the same.
    Off,
}

/// Whether TCP crosses the TAP in super-frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OffloadMode {
    /// If the kernel can; otherwise frame by frame, with a line in the log that says why.
    Auto,
    /// Yes, or the daemon does not start.
    On,
    /// No: frame by frame.
    Off,
}

impl From<bool> for Bundles {
    fn from(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }
}

impl fmt::Display for Bundles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::On { "on" } else { "off" })
    }
}

impl From<OffloadMode> for tap::TapOffload {
    fn from(offload: OffloadMode) -> Self {
        match offload {
            OffloadMode::Auto => Self::Auto,
            OffloadMode::On => Self::On,
            OffloadMode::Off => Self::Off,
        }
    }
}

/// What stands for the radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// A network interface.
    Interface(String),
    /// A UDP multicast group.
    Udp(UdpAddress),
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Udp(address) => address.fmt(f),
        }
    }
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with(UdpAddress::PREFIX) {
            return text.parse().map(Self::Udp).map_err(|error| format!("{error}"));
        }
        interface_name(text).map(Self::Interface)
    }
}

fn interface_name(text: &str) -> Result<String, String> {
    name::check(text).map_err(|error| error.source.to_string())?;
    Ok(text.to_owned())
}

fn ethertype(text: &str) -> Result<u16, String> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    // `from_str_radix` would take a sign.
    let digits = hex.unwrap_or(text);
    let radix = if hex.is_some() { 16 } else { 10 };
    let value = Some(digits)
        .filter(|digits| digits.chars().all(|c| c.is_digit(radix)))
        .and_then(|digits| u16::from_str_radix(digits, radix).ok())
        .ok_or("expected a number of 16 bits such as 0x88b5 or 34997")?;
    if !settings::ETHERTYPE_RANGE.contains(&value.into()) {
        let least = settings::ETHERTYPE_RANGE.start();
        return Err(format!("values below {least:#06x} are lengths, not EtherTypes"));
    }
    match owner(value) {
        Some(owner) => {
            Err(format!("{value:#06x} belongs to {owner}; 0x88b5 and 0x88b6 are for experiments"))
        }
        None => Ok(value),
    }
}

/// Whose EtherType this is, where using it would do harm.
fn owner(ethertype: u16) -> Option<&'static str> {
    Some(match ethertype {
        IPV4 => "IPv4",
        ARP => "ARP",
        IPV6 => "IPv6",
        C_TAG => "VLAN tags",
        0x8947 => "ETSI GeoNetworking",
        0x88dc => "IEEE 1609 (WSMP)",
        _ => return None,
    })
}

fn node_id(text: &str) -> Result<NodeId, String> {
    unicast(text).map(NodeId::from)
}

fn socket_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.ends_with('/') {
        return Err("expected a file, such as /run/v2x/obu0.sock".to_owned());
    }
    if text.len() > path::PATH_MAX {
        return Err(format!("expected at most {} bytes, not {}", path::PATH_MAX, text.len()));
    }
    Ok(text.into())
}

fn log_filter(text: &str) -> Result<String, String> {
    filter(text).map(|_| text.to_owned())
}

fn unicast(text: &str) -> Result<Mac, String> {
    let mac: Mac = text.parse().map_err(|error| format!("{error}"))?;
    if mac.is_unicast() {
        Ok(mac)
    } else {
        Err("expected an address of one node: not a group address and not all zero".to_owned())
    }
}

/// What the user typed, and what is known of it.
#[derive(Debug)]
pub struct Parsed<A> {
    /// What it means.
    pub args: A,
    /// All settings, each with where it comes from.
    pub settings: Vec<Setting>,
    /// The same to the line, for complaints.
    pub places: Places,
}

/// Reads the command line, the environment and the configuration file; exits with a message if they
/// cannot be understood, or if only help or what is set was wanted.
pub fn parse<A: Parser>(role: Role) -> Parsed<A> {
    let resolved = resolve::<A>(role, std::env::args_os()).unwrap_or_else(|error| error.exit());
    let args = A::from_arg_matches(&resolved.matches).unwrap_or_else(|error| error.exit());
    if resolved.matches.get_flag("show_config") {
        std::process::exit(i32::from(print(&resolved.shown()).is_err()));
    }
    Parsed { args, settings: resolved.told(), places: resolved.places() }
}

/// Reads this command line, and the environment and file that go with it.
pub fn parse_from<A: Parser>(
    role: Role,
    line: impl IntoIterator<Item = OsString>,
) -> Result<A, clap::Error> {
    A::from_arg_matches(&resolve::<A>(role, line)?.matches)
}

/// What every setting is, and where it comes from.
#[derive(Debug)]
pub struct Resolved {
    role: Role,
    matches: ArgMatches,
    command: clap::Command,
    file: Option<config::File>,
}

/// Reads the command line, the environment and the file that they name.
pub fn resolve<A: Parser>(
    role: Role,
    line: impl IntoIterator<Item = OsString>,
) -> Result<Resolved, clap::Error> {
    let line: Vec<_> = line.into_iter().collect();
    let mut bare = bare::<A>(role);
    let mut file = judged(role, &bare, &line)?;
    let nearer = with_variables(role, bare.clone()).ignore_errors(true);
    if let Ok(nearer) = nearer.try_get_matches_from(&line) {
        file = file.map(|file| file.without_excluded(&bare, &nearer));
    }
    if let Some(file) = &file {
        bare = file.defaults(bare);
    }
    let command = with_variables(role, bare.clone());
    let matches = command.clone().try_get_matches_from(&line);
    let matches = matches.map_err(|error| name_variable(role, bare, line, error))?;
    Ok(Resolved { role, matches, command, file })
}

/// Reads the file, if the line or a variable names one. The error is everything that is wrong with
/// the file and with variables, and what is first wrong with the line then.
fn judged(
    role: Role,
    bare: &clap::Command,
    line: &[OsString],
) -> Result<Option<config::File>, clap::Error> {
    // Which file it is has to be known before anything can be missing.
    let named = bare.clone().mut_arg("config", |arg| variables::with(role, arg));
    // Whoever wants help gets it, whatever else is wrong.
    let Ok(typed) = named.ignore_errors(true).try_get_matches_from(line) else { return Ok(None) };
    let path = typed.get_one::<PathBuf>("config");
    let read = path.map(|path| config::File::read(path, bare)).transpose();
    let (file, in_file) = read.map_or_else(|faults| (None, faults), |file| (file, Vec::new()));
    let faults = [variables::faults(role, bare, &typed), in_file].concat();
    if faults.is_empty() {
        return Ok(file);
    }
    // What is missing may be what cannot be understood.
    let optional = bare.clone().mut_args(|arg| arg.required(false));
    let on_line = optional.try_get_matches_from(line).err().map(|error| config::one_line(&error));
    let text = on_line.into_iter().chain(faults).collect::<Vec<_>>().join("\n");
    Err(clap::Error::raw(ErrorKind::ValueValidation, text + "\n"))
}

impl Resolved {
    /// There is a configuration file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// What each setting is, by key, as it was typed; `None` if it is not set.
    pub fn settings(&self) -> BTreeMap<String, Option<String>> {
        let settings = config::settings(&self.command);
        settings.map(|arg| (arg.get_id().to_string(), self.value(arg))).collect()
    }

    fn value(&self, arg: &Arg) -> Option<String> {
        let words = self.matches.get_raw(arg.get_id().as_str())?;
        Some(words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(","))
    }

    /// Where it was said; `None` if nobody did.
    fn origin(&self, arg: &Arg) -> Option<String> {
        let key = arg.get_id().as_str();
        match self.matches.value_source(key) {
            Some(ValueSource::CommandLine) => {
                Some(format!("--{}", arg.get_long().unwrap_or_default()))
            }
            Some(ValueSource::EnvVariable) => Some(variables::of(self.role, arg)),
            _ => self.file.as_ref()?.place(key),
        }
    }

    /// Where each setting was said that was.
    fn places(&self) -> Places {
        let place = |arg: &Arg| {
            let (key, origin) = (arg.get_id().to_string(), self.origin(arg)?);
            let is_default = self.matches.value_source(&key) == Some(ValueSource::DefaultValue);
            // What the file says is a default to whoever reads the line.
            let place = if is_default { format!("{origin}: {key}") } else { origin };
            Some((key, place))
        };
        config::settings(&self.command).filter_map(place).collect()
    }

    /// Every setting that has a value, in the order of the help.
    fn told(&self) -> Vec<Setting> {
        let setting = |arg: &Arg| {
            let key = arg.get_id().as_str();
            let from = match self.matches.value_source(key)? {
                ValueSource::CommandLine => Origin::Flag,
                ValueSource::EnvVariable => Origin::Environment,
                _ if self.file.as_ref().is_some_and(|file| file.place(key).is_some()) => {
                    Origin::File
                }
                _ => Origin::Default,
            };
            let values = self.matches.get_raw(key).into_iter().flatten();
            let values = values.map(|value| value.to_string_lossy().into_owned()).collect();
            Some(Setting { name: arg.get_long()?.to_owned(), values, from })
        };
        self.command.get_arguments().filter_map(setting).collect()
    }

    /// A file that sets everything so, with the origin of each setting behind it.
    pub fn shown(&self) -> String {
        let line = |arg: &Arg| {
            let key = arg.get_id().as_str();
            let Some(value) = self.value(arg) else { return format!("# {key} is not set\n") };
            let is_number = value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
            let quoted = match arg.get_action().takes_values() {
                // A variable may have said it in other words.
                false => self.matches.get_flag(key).to_string(),
                true if is_number => value,
                true => toml::Value::String(value).to_string(),
            };
            let origin = self.origin(arg).unwrap_or_else(|| "default".to_owned());
            format!("{:<40} # {origin}\n", format!("{key} = {quoted}"))
        };
        config::settings(&self.command).map(line).collect()
    }
}

fn bare<A: Parser>(role: Role) -> clap::Command {
    A::command()
        .after_help(exit::HELP)
        .mut_arg("tap_name", |arg| arg.required(false).default_value(role.tap_name))
}

/// The variables of the flags, as far as they are set to something.
fn with_variables(role: Role, bare: clap::Command) -> clap::Command {
    bare.mut_args(|arg| variables::with(role, arg))
}

/// The flags with their variables, for whoever writes about them: manual pages, completions.
pub fn command<A: Parser>(role: Role) -> clap::Command {
    bare::<A>(role).mut_args(|arg| {
        let variable = variables::of(role, &arg);
        arg.env(variable).hide_env_values(true)
    })
}

/// Names the variable that does not go with what else was said: the message speaks of the flag,
/// which nobody typed.
fn name_variable(
    role: Role,
    mut bare: clap::Command,
    line: Vec<OsString>,
    mut error: clap::Error,
) -> clap::Error {
    let flag = |error: &clap::Error| error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let Some(said) = flag(&error) else { return error };
    // Before that an argument cannot say how it looks.
    bare.build();
    let is_said = |arg: &&Arg| arg.to_string() == said;
    let variable = bare.get_arguments().find(is_said).map(|arg| variables::of(role, arg));
    let Some(variable) = variable.filter(|variable| std::env::var_os(variable).is_some()) else {
        return error;
    };
    // Without the environment the line has another fault, such as a flag that is missing, or none.
    let typed = bare.try_get_matches_from(line).err();
    let is_same =
        |typed: &clap::Error| typed.kind() == error.kind() && flag(typed).as_ref() == Some(&said);
    if !typed.as_ref().is_some_and(is_same) {
        let tip = format!("the value is that of the environment variable {variable}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Args {
        #[command(flatten)]
        common: Common,
    }

    fn parsed(line: &[&str]) -> Result<Common, String> {
        let line = ["obu"].iter().chain(line).map(OsString::from);
        parse_from::<Args>(crate::OBU, line).map(|args| args.common).map_err(|e| e.to_string())
    }

    #[test]
    fn the_shortest_line_has_all_defaults() {
        let common = parsed(&["-b", "wlan0"]).unwrap();
        assert_eq!(common.bind, Bind::Interface("wlan0".into()));
        assert_eq!(common.tap_name, "obu0");
        assert_eq!((common.ethertype, common.hello_history), (0x88b5, 10));
        assert_eq!((common.mtu, common.node_id, common.check), (None, None, false));
        assert!(common.ip.is_empty());
        assert_eq!(common.tap_offload, OffloadMode::Auto);
        assert_eq!((common.bundles, common.coalesce, common.busy_poll), (Bundles::On, 30, 100));
        assert_eq!(common.loop_settings(), LoopSettings::DEFAULT);
    }

    #[test]
    fn every_setting_says_where_it_comes_from() {
        let line = ["obu", "-b", "wlan0", "-i", "10.0.0.1,10.0.0.2"].map(OsString::from);
        let settings = resolve::<Args>(crate::OBU, line).unwrap().told();
        let find = |name: &str| settings.iter().find(|setting| setting.name == name);
        let ip = find("ip").unwrap();
        assert_eq!((ip.values.len(), ip.from), (2, Origin::Flag));
        let tap = find("tap-name").unwrap();
        assert_eq!((&tap.values[..], tap.from), (&["obu0".to_owned()][..], Origin::Default));
        assert_eq!(find("node-id"), None, "nobody said anything, and there is no default");
    }

    #[test]
    fn the_southern_half_of_the_world_is_no_flag() {
        let position = parsed(&["-b", "w", "--position", "-33.9,151.2"]).unwrap().position;
        let Some(PositionSource::Fixed(fix)) = position else { panic!("{position:?}") };
        assert_eq!((fix.latitude_deg, fix.longitude_deg), (-33.9, 151.2));
        assert_eq!(parsed(&["-b", "w"]).unwrap().position, None);
    }

    #[test]
    fn addresses_may_be_repeated_or_listed() {
        let common = parsed(&["-b", "w", "-i", "10.0.0.1", "--ip", "fd00::1/48,10.0.1.1/16"]);
        let shown: Vec<_> = common.unwrap().ip.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.1/24", "fd00::1/48", "10.0.1.1/16"]);
    }

    #[test]
    fn an_ethertype_is_hexadecimal_or_decimal_and_nobody_elses() {
        assert_eq!(ethertype("0x88B6"), Ok(0x88b6));
        assert_eq!(ethertype("34997"), Ok(0x88b5));
        for text in ["", "0x", "+5000", "0x+600", "65536", "0x10000", "beef", "-1"] {
            assert!(ethertype(text).unwrap_err().contains("16 bits"), "{text}");
        }
        assert!(ethertype("0x05ff").unwrap_err().contains("lengths"));
        for taken in ["0x0800", "0x0806", "0x86dd", "0x8100", "0x8947", "0x88dc", "2048"] {
            assert!(ethertype(taken).unwrap_err().contains("belongs to"), "{taken}");
        }
    }

    #[test]
    fn out_of_range_values_are_refused_with_the_range() {
        for (flag, value, expected) in [
            ("--mtu", "67", "68..=65467"),
            ("--mtu", "65468", "68..=65467"),
            ("--hello-history", "0", "1..=64"),
            ("--hello-history", "65", "1..=64"),
            ("--node-id", "ff:ff:ff:ff:ff:ff", "not a group address"),
            ("--node-id", "02:00", "six hexadecimal bytes"),
            ("--tap-name", "sixteen_bytes_xx", "1 to 15"),
            ("--bridge", "a/b", "'/'"),
            ("--tap-mac", "01:00:5e:00:00:01", "not a group address"),
            ("--ip", "10.0.0.0/24", "network"),
            ("--ip", "10.0.0.255/24", "broadcast"),
            ("--ip", "10.0.0.1/33", "1 to 32"),
            ("--tap-offload", "yes", "auto, on, off"),
            ("--bundles", "1", "on, off"),
            ("--pmtu-discovery", "df", "on, off"),
            ("--coalesce", "1001", "0..=1000"),
            ("--busy-poll", "1001", "0..=1000"),
            ("--log-format", "xml", "text, json"),
            ("--control", "/run/v2x/", "expected a file"),
            ("--http", "localhost:80", "expected a port"),
            ("--position", "91,0", "-90 to 90"),
            ("--position", "--check", "LAT,LON[,ALT]"),
            ("--position", "gpsd://a:0", "gpsd://HOST:PORT"),
            ("--record-size", "0", "1..=1048576"),
            ("--record-snap", "65536", "96 to 65535"),
            ("--record-snap", "95", "0 or 96"),
        ] {
            let error = parsed(&["-b", "w", flag, value]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_radio_is_an_interface_or_a_group() {
        assert!(matches!(parsed(&["-b", "udp:"]).unwrap().bind, Bind::Udp(_)));
        assert!(parsed(&["-b", "udp:10.0.0.1:5"]).unwrap_err().contains("224.0.0.0/4"));
        assert!(parsed(&["-b", "a/b"]).unwrap_err().contains("'/'"));
        assert!(parsed(&[]).unwrap_err().contains("--bind"));
    }
}
