//! [`Supervised`]: tells systemd that the daemon is ready, alive and about to stop
//! (`sd_notify(3)`).
//!
//! A sign of life is given where the packet loop asks for commands, and nowhere else: a loop that
//! hangs gives none, and the supervisor starts the daemon again. Without a supervisor nothing is
//! told.
//!
//! Not the crate `sd-notify`: its messages wait until the supervisor takes them, and the packet
//! loop must not.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::task::{Context, Poll};
use std::time::Duration;

use node_lib::runtime::command::{Command, Commands};
use node_lib::runtime::request::{Request, Told};
use tokio::time::{Interval, MissedTickBehavior};
use tracing::warn;

/// Where the supervisor listens, if there is one.
#[derive(Debug)]
pub struct Supervisor(Option<UnixDatagram>);

impl Supervisor {
    /// The one that the environment names. One that cannot be reached is a warning: what else is
    /// there to do.
    pub fn from_env() -> Self {
        let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self(None);
        };
        Self(
            connect(&name)
                .inspect_err(|error| warn!(?name, %error, "cannot reach the supervisor"))
                .ok(),
        )
    }

    /// Says this, if somebody listens. What is not taken at once is not said.
    pub fn tell(&self, state: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(state.as_bytes());
        }
    }
}

fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

/// How often a sign of life is due: twice in the time that the supervisor waits for one. `None`: it
/// waits for none, or for another process.
fn watchdog(limit: Option<OsString>, of: Option<OsString>, own_id: u32) -> Option<Duration> {
    let number = |text: OsString| text.to_str()?.parse::<u64>().ok();
    if of.is_some_and(|of| number(of) != Some(own_id.into())) {
        return None;
    }
    let limit = limit.and_then(number).filter(|limit| *limit > 1)?;
    Some(Duration::from_micros(limit / 2))
}

/// The commands of a daemon that somebody supervises.
#[derive(Debug)]
pub struct Supervised<C> {
    commands: C,
    supervisor: Supervisor,
    life: Option<Interval>,
}

impl<C> Supervised<C> {
    /// Tells the supervisor that the daemon is ready. Must run inside a tokio runtime.
    pub fn ready(commands: C, supervisor: Supervisor) -> Self {
        let (limit, of) = (env::var_os("WATCHDOG_USEC"), env::var_os("WATCHDOG_PID"));
        let period = watchdog(limit, of, std::process::id()).filter(|_| supervisor.0.is_some());
        let life = period.map(|period| {
            let mut life = tokio::time::interval(period);
            life.set_missed_tick_behavior(MissedTickBehavior::Delay);
            life
        });
        supervisor.tell("READY=1");
        Self { commands, supervisor, life }
    }
}

impl<C: Commands> Commands for Supervised<C> {
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command> {
        if let Some(life) = &mut self.life {
            // Polled until it is pending, so that it wakes the loop for the next.
            while life.poll_tick(cx).is_ready() {
                self.supervisor.tell("WATCHDOG=1");
            }
        }
        let command = self.commands.poll_command(cx);
        if command == Poll::Ready(Command::Stop) {
            self.supervisor.tell("STOPPING=1");
        }
        command
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Request> {
        self.commands.poll_request(cx)
    }

    fn has_listeners(&self) -> bool {
        self.commands.has_listeners()
    }

    fn tell(&mut self, told: Told) {
        self.commands.tell(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::runtime::command::Remote;
    use std::task::Waker;

    fn heard(at: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 100];
        let mut all = Vec::new();
        while let Ok(len) = at.recv(&mut buffer) {
            all.push(String::from_utf8_lossy(&buffer[..len]).into_owned());
        }
        all
    }

    #[test]
    fn a_sign_of_life_is_due_twice_in_the_time_and_only_from_who_is_watched() {
        let due = |limit: &str, of: &str| {
            let some = |text: &str| Some(OsString::from(text)).filter(|text| !text.is_empty());
            watchdog(some(limit), some(of), 17)
        };
        assert_eq!(due("10000000", ""), Some(Duration::from_secs(5)));
        assert_eq!(due("10000000", "17"), Some(Duration::from_secs(5)));
        for (limit, of) in [("10000000", "18"), ("", "17"), ("0", ""), ("x", ""), ("2", "x")] {
            assert_eq!(due(limit, of), None, "{limit} {of}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lives_as_long_as_the_loop_asks() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("notify");
        let listener = UnixDatagram::bind(&name).unwrap();
        listener.set_nonblocking(true).unwrap();
        let supervisor = Supervisor(Some(connect(name.as_os_str()).unwrap()));
        let remote = Remote::new();
        let mut life = tokio::time::interval(Duration::from_secs(5));
        life.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut loops = Supervised { commands: remote.clone(), supervisor, life: Some(life) };
        let mut cx = Context::from_waker(Waker::noop());
        assert!(loops.poll_command(&mut cx).is_pending());
        assert_eq!(heard(&listener), ["WATCHDOG=1"]);
        // Who asks again at once says nothing more, and who does not ask says nothing.
        assert!(loops.poll_command(&mut cx).is_pending());
        tokio::time::advance(Duration::from_secs(21)).await;
        assert_eq!(heard(&listener), [""; 0]);
        assert!(loops.poll_command(&mut cx).is_pending());
        assert_eq!(heard(&listener), ["WATCHDOG=1"]);
        remote.send(Command::Stop);
        assert_eq!(loops.poll_command(&mut cx), Poll::Ready(Command::Stop));
        assert_eq!(heard(&listener), ["STOPPING=1"]);
    }

    #[test]
    fn a_supervisor_may_have_an_abstract_name_and_need_not_listen() {
        let name = format!("v2x-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        let supervisor = Supervisor(Some(connect(OsStr::new(&format!("@{name}"))).unwrap()));
        // More than it takes: nobody waits.
        (0..10_000).for_each(|_| supervisor.tell("WATCHDOG=1"));
        listener.set_nonblocking(true).unwrap();
        assert!(heard(&listener).len() > 1);
        drop(listener);
        supervisor.tell("WATCHDOG=1");
        Supervisor(None).tell("READY=1");
    }
}
