//! What the user typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use node_lib::Mac;

/// Exit codes as `--help` tells them.
const HELP: &str = "\
Exit codes:
  0  done
  1  a daemon refused
  2  wrong arguments
  3  a daemon could not be reached
  4  status: nothing gets through, an OBU without upstream for example; ping, traceroute: not
     reached";

/// Looks inside running daemons, and asks them why
#[derive(Debug, Parser)]
#[command(name = "v2xctl", version, after_help = HELP)]
pub(crate) struct Args {
    /// Control socket, or the name of a TAP whose socket is in /run/v2x; may be repeated. By
    /// default all sockets there
    #[arg(short, long, value_name = "SOCKET", global = true)]
    pub(crate) socket: Vec<String>,

    /// All daemons with a socket in /run/v2x
    #[arg(long, global = true, conflicts_with = "socket")]
    pub(crate) all: bool,

    /// How answers look
    #[arg(short, long, value_name = "FORMAT", default_value = "table", global = true)]
    pub(crate) output: Output,

    /// Again and again, every second or so many apart: -w, -w=5
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
        default_missing_value = "1", value_parser = seconds, global = true)]
    pub(crate) watch: Option<Duration>,

    /// File with names of nodes and clients: an address and a name a line
    #[arg(long, value_name = "FILE", env = "V2X_NAMES", global = true)]
    pub(crate) names: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Option<CtlCommand>,
}

/// How answers look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Table,
    /// JSON objects, one a line: one for each daemon; of ping and traceroute one for each question
    /// or hop, of events one each time that something happens.
    Json,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CtlCommand {
    /// Who it is, and whether it is well (also without a command)
    #[command(visible_alias = "s")]
    Status,
    /// Nodes in radio range, and how well each direction works
    #[command(visible_alias = "n")]
    Neighbors,
    /// Through whom each RSU could be reached: figures, and why not
    #[command(visible_alias = "u")]
    Upstreams,
    /// The way in use to each RSU, or to each OBU
    #[command(visible_alias = "r")]
    Routes,
    /// RSUs known, and why one is not used
    Rsus,
    /// MAC addresses behind the TAP, and behind OBUs
    #[command(visible_alias = "c")]
    Clients {
        #[command(subcommand)]
        action: Option<ClientAction>,
    },
    /// OBUs an RSU knows
    #[command(visible_alias = "o")]
    Obus,
    /// The tree of upstreams, as this node knows it
    Tree,
    /// The radio: address, load, signal, other EtherTypes
    Radio,
    /// Changes of upstream: cause, gap, losses
    #[command(visible_alias = "ho")]
    Handovers {
        /// How many gaps there were of which length
        #[arg(long)]
        histogram: bool,
    },
    /// What decided: now, or for the change with this number (see handovers)
    Why {
        /// Number of a change
        id: Option<u64>,
    },
    /// Counters that are not zero
    #[command(visible_alias = "st")]
    Stats {
        /// Only those whose name begins so, such as drop_
        prefix: Option<String>,
        /// Also those that are zero; as JSON they always stand there
        #[arg(short, long)]
        zero: bool,
    },
    /// What happened, and what happens from now on
    #[command(visible_alias = "e")]
    Events {
        /// Only what happened
        #[arg(long)]
        past: bool,
    },
    /// Settings, and where each comes from
    Config {
        #[command(subcommand)]
        action: Option<ConfigAction>,
    },
    /// All of it on a full screen: upstream, candidates, throughput, drops, hand-overs
    Top,
    /// Ask a node, or the node of a client, and measure how long the answer takes
    Ping {
        /// Node id, MAC of a client, or a name of the names file
        target: String,
        /// How often
        #[arg(short, long, value_name = "N", default_value_t = 5,
            value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
        /// Seconds from one question to the next
        #[arg(short, long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
        interval: Duration,
        /// Seconds to wait for an answer
        #[arg(short = 'W', long, value_name = "SECONDS", default_value = "1",
            value_parser = patience)]
        timeout: Duration,
    },
    /// Show who is on the way to a node or client, and how long each takes to answer
    #[command(visible_alias = "tr")]
    Traceroute {
        /// Node id, MAC of a client, or a name of the names file
        target: String,
        /// Questions for each hop
        #[arg(short = 'q', long, value_name = "N", default_value_t = 3,
            value_parser = clap::value_parser!(u32).range(1..=10))]
        queries: u32,
        /// Seconds to wait for an answer
        #[arg(short = 'W', long, value_name = "SECONDS", default_value = "1",
            value_parser = patience)]
        timeout: Duration,
    },
    /// Whether the node is recorded, and where; or start and stop it
    Record {
        #[command(subcommand)]
        action: Option<RecordAction>,
    },
    /// Look at recordings, repair, export and replay them: the program v2xtrace, with its arguments
    #[command(disable_help_flag = true)]
    Trace {
        /// As v2xtrace takes them; --help lists them
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        line: Vec<OsString>,
    },
    /// What is logged; with an argument, what is to be logged from now on
    LogLevel {
        /// As --log of the daemons: off, error, warn, info, debug or trace, also per module
        filter: Option<String>,
    },
    /// A script that completes commands in a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ClientAction {
    /// Put a client behind an OBU, whatever is heard of it, for as long as the OBU is attached to
    /// this road-side unit; until it is unpinned, or the daemon ends
    Pin {
        /// Its address
        mac: Mac,
        /// Id of the OBU
        obu: Mac,
        /// Its VLAN; 0 without a tag
        #[arg(long, default_value_t = 0)]
        vlan: u16,
    },
    /// Take the pins of a client off, or all: it is where it is heard
    Unpin {
        /// Only of this one
        mac: Option<Mac>,
    },
    /// Forget clients: those that speak are learnt anew. Pins stay
    Flush {
        /// Only this one
        mac: Option<Mac>,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// All settings
    Show,
    /// One setting
    Get {
        /// Its flag, without dashes in front, or its name in a configuration file
        name: String,
    },
    /// Give a setting a value until the next start; only what can change while the daemon runs
    Set {
        /// Its flag, without dashes
        name: String,
        /// As it would follow the flag
        value: String,
    },
    /// Read the configuration file and say what is wrong with it, or what a reload would change
    Check,
    /// Read the configuration file again, as SIGHUP does, and say what waits for the next start
    Reload,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RecordAction {
    /// Record from now on
    Start {
        /// Into this directory of the daemon's host; by default that of --record
        directory: Option<String>,
    },
    /// Record no longer
    Stop,
    /// Put a text into the recording, and have the moment kept: 15 s before and 5 s after
    Mark {
        /// What happened
        text: Vec<String>,
    },
}

fn patience(text: &str) -> Result<Duration, String> {
    let patience = seconds(text)?;
    if patience > Duration::from_secs(10) {
        return Err(format!("{text:?}: expected seconds from 0.1 to 10"));
    }
    Ok(patience)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let expected = || format!("{text:?}: expected seconds from 0.1 to 3600");
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    if !(0.1..=3600.0).contains(&seconds) {
        return Err(expected());
    }
    Ok(Duration::from_secs_f64(seconds))
}
