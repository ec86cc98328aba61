//! What the daemons `obu` and `rsu` share, so that `main` in either is a checklist and nothing is
//! written twice.
//!
//! A crate of its own rather than a part of `node_lib::runtime`. That library also serves
//! simulators and other programs, which have arguments, logging and exit codes of their own and
//! should not have to build ours. It knows no role: what differs comes in as a [`Role`].
//!
//! | module | step of `main` |
//! |---|---|
//! | [`args`] | what the user typed |
//! | [`config`] | what the file says; [`reload`]: what it says now; `variables`: the environment |
//! | [`logging`] | where log lines go; [`sink`]: without holding anybody up; `log_filter`: which |
//! | [`capabilities`] | what the kernel lets us do |
//! | [`privileges`] | what of it is given up |
//! | [`control`] | the control socket: who may look inside, and change what |
//! | [`http`] | the same over HTTP, to look only: tables, metrics, a web page |
//! | [`position`] | who tells where the node is |
//! | [`signal`] | who tells how strong others come in |
//! | [`recording`] | what of the node is recorded |
//! | [`findings`] | what is wrong with all of that, and where it was said |
//! | [`start`] | checks, devices, loop, shutdown; `radio`: the packet socket, or the UDP link |
//! | [`supervisor`] | what systemd is told |
//! | [`exit`] | what the shell is told |

pub mod args;
pub mod capabilities;
pub mod config;
pub mod control;
pub mod exit;
pub mod findings;
pub mod http;
mod log_filter;
pub mod logging;
pub mod position;
pub mod privileges;
mod radio;
pub mod recording;
pub mod reload;
pub mod signal;
pub mod sink;
pub mod start;
pub mod supervisor;
mod variables;

/// What tells one daemon from the other, apart from its node.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Prefix of its environment variables.
    pub env_prefix: &'static str,
    /// Name of its TAP unless another is given.
    pub tap_name: &'static str,
}

/// The OBU daemon.
pub const OBU: Role = Role { env_prefix: "OBU", tap_name: "obu0" };
/// The RSU daemon.
pub const RSU: Role = Role { env_prefix: "RSU", tap_name: "rsu0" };
