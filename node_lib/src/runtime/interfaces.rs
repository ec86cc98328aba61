//! Interfaces that come, go and change while the loop runs.

use std::io;
use std::time::Duration;

use tracing::{debug, info, warn};

use super::Running;
use super::command::Commands;
use crate::control::node::{LinkEvent, Node};
use crate::device::{Device, LinkChange, LinkState, Links, Side};
use crate::time::Timestamp;

/// Wait before the first attempt to re-create a TAP; it doubles with every failure.
const REOPEN_DELAY_MIN: Duration = Duration::from_millis(100);
/// Longest wait between attempts to re-create a TAP.
const REOPEN_DELAY_MAX: Duration = Duration::from_secs(5);

/// A TAP that is gone and will be tried again.
#[derive(Clone, Copy)]
pub(super) struct Reopen {
    pub(super) at: Timestamp,
    delay: Duration,
    /// The failure has been logged; one line per change is enough.
    logged: bool,
}

impl<N: Node, R: Device, T: Device, L: Links, C: Commands> Running<'_, N, R, T, L, C> {
    pub(super) fn link_event(&mut self, event: LinkEvent) {
        let now = self.clock.now();
        self.node.handle_link(now, event, &mut self.replies);
        self.transmit(now);
    }

    pub(super) fn link_changed(&mut self, change: LinkChange) {
        match change.side {
            Side::Radio => self.radio_changed(change.link),
            Side::Tap => self.tap_changed(change.link),
        }
    }

    fn radio_changed(&mut self, link: Option<LinkState>) {
        if let Err(error) = self.ports.radio.link_changed(link.as_ref()) {
            // Gone again already: the next change says so.
            debug!(cause = %error.source, "{error}");
        }
        let radio = self.ports.radio.name().to_owned();
        let was_up = self.radio_up;
        let Some(link) = link else {
            warn!(%radio, "radio interface is gone, waiting for it");
            self.radio_up = false;
            if was_up {
                self.link_event(LinkEvent::Down);
            }
            return;
        };
        self.radio_up = link.up;
        let (mac, mtu) = (link.mac, link.mtu);
        let before = std::mem::replace(&mut self.radio, link);
        let recreated = before.index != self.radio.index;
        if recreated {
            info!(%radio, index = self.radio.index, "radio interface is back");
        }
        if was_up && (recreated || !self.radio_up) {
            warn!(%radio, "radio is down, waiting for it");
            self.link_event(LinkEvent::Down);
        }
        if before.mac != mac {
            info!(%radio, %mac, "radio has another address");
            self.link_event(LinkEvent::AddressChanged(mac));
        }
        if before.mtu != mtu {
            self.ports.way_out.set_radio_mtu(mtu);
            self.radio_mtu_changed(&radio, mtu);
        }
        if self.radio_up && (recreated || !was_up) {
            info!(%radio, "radio is up");
            self.link_event(LinkEvent::Up);
        }
    }

    fn radio_mtu_changed(&mut self, radio: &str, mtu: usize) {
        self.link_event(LinkEvent::MtuChanged(mtu));
        match self.tap_mtu.over(mtu) {
            Ok(tap_mtu) => {
                info!(%radio, mtu, tap_mtu, "radio MTU");
                self.links.configure_tap(tap_mtu);
                self.waiter.wakeup.raise();
            }
            Err(error) => warn!(%radio, mtu, %error, "radio MTU does not fit the TAP"),
        }
    }

    fn tap_changed(&mut self, link: Option<LinkState>) {
        if let Err(error) = self.ports.tap.link_changed(link.as_ref()) {
            debug!(cause = %error.source, "{error}");
        }
        self.tap_has_mtu = link.as_ref().map(|link| link.mtu);
        self.lan_changed(link.as_ref().is_some_and(|link| link.up));
        if link.is_none() {
            // Whether it is ours that was deleted, the descriptor knows.
            self.turn_tap(self.clock.now());
        }
    }

    fn lan_changed(&mut self, up: bool) {
        if std::mem::replace(&mut self.lan_up, up) == up {
            return;
        }
        let tap = self.ports.tap.name();
        if up {
            info!(tap, "TAP is up");
        } else {
            warn!(tap, "TAP is down, gone or out of its bridge: no frame gets through to the LAN");
        }
        self.link_event(if up { LinkEvent::LanUp } else { LinkEvent::LanDown });
    }

    /// Notices that the TAP is gone, and tries to re-create it when the time has come.
    pub(super) fn turn_reopen(&mut self, now: Timestamp) -> io::Result<()> {
        if std::mem::take(&mut self.ports.tap_lost) && self.reopen.is_none() {
            warn!(tap = self.ports.tap.name(), "TAP was deleted, re-creating it");
            let delay = REOPEN_DELAY_MIN;
            self.reopen = Some(Reopen { at: now + delay, delay, logged: false });
        }
        let Some(reopen) = self.reopen.filter(|reopen| reopen.at <= now) else {
            return Ok(());
        };
        match self.ports.tap.reopen() {
            Ok(()) => {
                self.reopen = None;
                info!(tap = self.ports.tap.name(), "TAP is back");
                self.waiter.watch(Side::Tap, self.ports.tap.descriptor())?;
                if let Ok(mtu) = self.tap_mtu.over(self.radio.mtu) {
                    self.links.configure_tap(mtu);
                    self.waiter.wakeup.raise();
                }
            }
            Err(error) => {
                if !reopen.logged {
                    warn!(cause = %error.source, "{error}; trying again");
                }
                let delay = (reopen.delay * 2).min(REOPEN_DELAY_MAX);
                self.reopen = Some(Reopen { at: now + delay, delay, logged: true });
            }
        }
        Ok(())
    }
}
