//! What the loop shows of the node and itself: answers, events, reports.

use tracing::info;

use super::command::Commands;
use super::ports::Ports;
use super::request::{Request, Told};
use super::{Running, log};
use crate::control::event::Event;
use crate::control::node::Node;
use crate::control::ping::Ping;
use crate::control::snapshot::{Groups, InterfaceState, View, WiderPort, span_ms};
use crate::device::{Device, Links};
use crate::time::Timestamp;

impl<N: Node, R: Device, T: Device, L: Links, C: Commands> Running<'_, N, R, T, L, C> {
    /// Those who listen hear of an event, and of a decision what it was made from.
    pub(super) fn tell(&mut self, now: Timestamp, event: Event) {
        if !self.commands.has_listeners() {
            return;
        }
        let is_decision = matches!(event, Event::UpstreamChanged { .. });
        let routes = if is_decision { self.node.routes(now) } else { Vec::new() };
        self.commands.tell(Told { at: now, event, routes });
    }

    /// Shows those who wait for it how the node stands, if it is time.
    pub(super) fn show_viewers(&mut self, now: Timestamp) {
        if self.viewers.deadline().is_none_or(|at| now < at) {
            return;
        }
        let was_full = self.viewers.is_full();
        let began = self.clock.now();
        let view = self.view(began);
        self.viewers.answer(view, began, self.clock.now());
        if was_full {
            // Nobody has looked for other questions meanwhile.
            self.waiter.wakeup.raise();
        }
    }

    fn view(&mut self, now: Timestamp) -> View {
        let Ports { radio, tap, way_out, busy_poll, .. } = &mut self.ports;
        let other_ethertypes = self.links.other_ethertypes();
        let alone = self.first_contact.likely(*radio, self.radio_up, &other_ethertypes);
        let counters = Groups {
            node: self.node.counters().iter().collect(),
            radio: radio.counters().iter().collect(),
            tap: tap.counters().iter().collect(),
            bundles: way_out.bundles().iter().collect(),
            outbox: way_out.waited().iter().collect(),
            busy_poll: busy_poll.counters().iter().collect(),
            signal: self.links.signal_counters().iter().collect(),
        };
        View {
            uptime_ms: span_ms(now.since(self.began)),
            node: self.node.snapshot(now),
            radio: InterfaceState {
                name: radio.name().to_owned(),
                mac: Some(self.radio.mac),
                mtu_bytes: Some(self.radio.mtu),
                is_up: self.radio_up,
            },
            tap: InterfaceState {
                name: tap.name().to_owned(),
                mac: None,
                mtu_bytes: self.tap_has_mtu,
                is_up: self.lan_up,
            },
            wider_port: self
                .links
                .wider_port()
                .map(|port| WiderPort { name: port.name.clone(), mtu_bytes: port.mtu }),
            is_radio_full: way_out.is_waiting(),
            alone,
            other_ethertypes,
            counters,
        }
    }

    pub(super) fn answer(&mut self, request: Request) {
        match request {
            Request::View(viewer) => self.viewers.add(viewer),
            Request::ForgetClients(which, reply) => {
                let now = self.clock.now();
                let forgotten = self.node.forget_clients(now, which, &mut self.replies);
                self.transmit(now);
                info!(which = which.map(tracing::field::display), forgotten, "clients forgotten");
                // Who asked may have gone.
                let _ = reply.send(forgotten);
            }
            Request::PinClients(pin, reply) => {
                let now = self.clock.now();
                let pinned = self.node.pin_clients(now, pin, &mut self.replies);
                self.transmit(now);
                match &pinned {
                    Ok(pins) => info!(?pin, pins, "clients pinned"),
                    Err(why) => info!(?pin, %why, "clients not pinned"),
                }
                let _ = reply.send(pinned);
            }
            Request::Ping(target, hop_limit, reply) => {
                let now = self.clock.now();
                let nonce = self.pingers.add(reply);
                let ping = Ping { target, hop_limit, nonce };
                self.node.handle_ping(now, ping, &mut self.replies);
                self.transmit(now);
            }
            Request::Position(located) => {
                let now = self.clock.now();
                self.node.handle_position(now, located);
            }
        }
    }

    pub(super) fn report(&mut self) {
        let Ports { radio, tap, way_out, busy_poll, .. } = &mut self.ports;
        let (bundles, outbox) = (way_out.bundles(), way_out.waited());
        let signal = self.links.signal_counters();
        log::counters(self.node, *radio, *tap, bundles, outbox, busy_poll.counters(), &signal);
    }
}
