//! How a world runs: what each event does to nodes, links, LANs and clients.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use crate::check::{Breach, Receiver, Rule, Segment, Subject, Violation};
use crate::dice::{Luck, subseed};
use crate::fault::Fault;
use crate::frame::{Flight, Trigger};
use crate::index::{ClientIndex, FlowIndex, NodeIndex};
use crate::lan::{LanPort, addresses};
use crate::link::Link;
use crate::link_trace::{LinkStep, LinkSteps, LinkTrace};
use crate::trace::What;
use crate::traffic::{Numbered, Target};
use crate::world::air::whole_dbm;
use crate::world::{
    Entry, FLOW_SEED, Home, LAN_DELAY, Plug, RETRY_AFTER, SPINS_MAX, SPINS_WITHIN, STRENGTH_SEED,
    SimEvent, Slot, TapDelivery, World,
};
use node_lib::control::event::Event;
use node_lib::control::node::{Interface, LinkEvent, Node, Replies};
use node_lib::mac::Mac;
use node_lib::time::Timestamp;

impl World {
    pub(super) fn plan(&mut self, time: Timestamp, what: SimEvent) {
        self.serial += 1;
        let entry = Entry { time: time.max(self.now), serial: self.serial, what };
        self.queue.push(Reverse(entry));
    }

    pub(super) fn handle(&mut self, what: SimEvent) {
        match what {
            SimEvent::Arrive { to, life, flight } => self.arrive(to, life, flight),
            SimEvent::Hear { node, dbm, flight } => self.heard_at_once(node, &flight, dbm),
            SimEvent::Step { step, medium } if medium == self.mediums => self.step(step),
            SimEvent::Step { .. } => {}
            SimEvent::Move => self.move_all(),
            SimEvent::Second => self.end_second(),
            SimEvent::Replay { pair, step } => self.replay_step(pair, step),
            SimEvent::Appear { node } => self.appear(node),
            SimEvent::Disappear { node } => self.disappear(node),
            SimEvent::Begin { node, life, boot } => self.begin(node, life, boot),
            SimEvent::Wake { node, life } => self.wake(node, life),
            SimEvent::Room { node } => self.retry(node),
            SimEvent::Resume { node, life } => self.resume(node, life),
            SimEvent::Unacknowledged { node, life, flight } => {
                self.tell_unacknowledged(node, life, &flight);
            }
            SimEvent::IntoTap { node, frame } => self.enter_tap(node, &frame),
            SimEvent::Reach { client, by, frame } => self.reach(client, by, &frame),
            SimEvent::Emit { flow } => self.emit(flow),
            SimEvent::Change(fault) => self.apply(*fault),
            SimEvent::Gone { node, life } => {
                if self.slots.get(node).is_some_and(|slot| slot.life == life) {
                    self.note_last(node);
                    self.stop(node);
                }
            }
        }
    }

    /// Makes a change now.
    pub fn apply(&mut self, fault: Fault) {
        self.trace.add(self.now, What::Fault(fault));
        match fault {
            Fault::CutOneWay(a, b) => self.set_cut(a, b, true),
            Fault::HealOneWay(a, b) => self.set_cut(a, b, false),
            Fault::Cut(a, b) => {
                self.set_cut(a, b, true);
                self.set_cut(b, a, true);
            }
            Fault::Heal(a, b) => {
                self.set_cut(a, b, false);
                self.set_cut(b, a, false);
            }
            Fault::Isolate(a) => self.set_isolated(a, true),
            Fault::Rejoin(a) => self.set_isolated(a, false),
            Fault::RadioDown(a) => self.set_radio_up(a, false),
            Fault::RadioUp(a) => self.set_radio_up(a, true),
            Fault::LanDown(a) => self.set_lan_up(a, false),
            Fault::LanUp(a) => self.set_lan_up(a, true),
            Fault::Crash(a) => self.stop(a.0),
            Fault::Start(a) => self.start(a.0),
            Fault::Restart(a, after) => {
                self.stop(a.0);
                self.at(self.now + after, Fault::Start(a));
            }
            Fault::Stall(a, span) => self.stall(a.0, span),
            Fault::Shutdown(a) => self.shut_down(a.0),
            Fault::Relink(a, b, link) => self.link(a, b, link),
        }
    }

    fn set_cut(&mut self, from: NodeIndex, to: NodeIndex, cut: bool) {
        if let Some(path) = self.paths.get_mut(from.0).and_then(|paths| paths.get_mut(&to.0)) {
            path.cut = cut;
        }
        if let Some(placed) = &mut self.placed {
            placed.set_cut(from.0, to.0, cut);
        }
    }

    /// Lets links change as a trace has it, from now on; steps of the past come at once. Faults
    /// keep nodes apart as before. For worlds without a [`RadioModel`](crate::RadioModel).
    pub fn replay(&mut self, trace: &LinkTrace) {
        for (from, to, steps) in trace.links() {
            let pair = self.replays.len();
            self.replays.push(LinkSteps { from, to, steps: steps.to_vec() });
            if let Some(first) = steps.first() {
                self.plan(first.time, SimEvent::Replay { pair, step: 0 });
            }
        }
    }

    fn replay_step(&mut self, pair: usize, step: usize) {
        let Some(LinkSteps { from, to, steps }) = self.replays.get(pair) else { return };
        let (from, to, next) = (*from, *to, steps.get(step + 1).map(|next| next.time));
        let Some(&LinkStep { loss, delay, strength, .. }) = steps.get(step) else { return };
        let link = Link { loss, delay, jitter: Duration::ZERO, duplicate: 0.0 };
        if self.paths.get(from.0).is_none_or(|paths| !paths.contains_key(&to.0)) {
            self.link_one_way(from, to, link);
        }
        if let Some(path) = self.paths.get_mut(from.0).and_then(|paths| paths.get_mut(&to.0)) {
            (path.link, path.strength) = (link, strength);
        }
        if let Some(time) = next {
            self.plan(time, SimEvent::Replay { pair, step: step + 1 });
        }
    }

    fn set_isolated(&mut self, node: NodeIndex, isolated: bool) {
        if let Some(slot) = self.slots.get_mut(node.0) {
            slot.isolated = isolated;
        }
    }

    fn set_radio_up(&mut self, node: NodeIndex, up: bool) {
        let Some(slot) = self.slots.get_mut(node.0) else { return };
        slot.radio_up = up;
        let event = if up { LinkEvent::Up } else { LinkEvent::Down };
        if self.is_put_off(node.0, Some(event)) {
            return;
        }
        self.drive(node.0, None, |node, now, out| node.handle_link(now, event, out));
    }

    /// A node's radio has listened to its channel for a second. A process that stands still hears
    /// of the next one.
    pub(super) fn tell_busy(&mut self, index: usize, percent: u8) {
        if self.slots.get(index).is_some_and(|slot| !slot.is_stalled) {
            let event = LinkEvent::ChannelBusy(percent);
            self.drive(index, None, |node, now, out| node.handle_link(now, event, out));
        }
    }

    fn set_lan_up(&mut self, node: NodeIndex, up: bool) {
        let Some(slot) = self.slots.get_mut(node.0) else { return };
        slot.lan_up = up;
        let event = if up { LinkEvent::LanUp } else { LinkEvent::LanDown };
        if self.is_put_off(node.0, Some(event)) {
            return;
        }
        self.drive(node.0, None, |node, now, out| node.handle_link(now, event, out));
    }

    fn wake(&mut self, index: usize, life: u32) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(index) else { return };
        // An earlier plan, replaced since.
        if slot.life != life || slot.wake_planned != Some(now) {
            return;
        }
        slot.wake_planned = None;
        if slot.wake.is_none_or(|wake| wake > now) {
            return self.plan_wake(index);
        }
        slot.wake = None;
        if slot.is_stalled {
            return;
        }
        if self.outbox_expires(index).is_some_and(|at| at <= now) {
            self.retry(index);
        }
        let Some(slot) = self.slots.get_mut(index) else { return };
        let clock = slot.clock(now);
        let wish = slot.node.as_deref().and_then(|node| node.deadline());
        let Some(wish) = wish.filter(|wish| wish.at <= clock) else {
            return self.note_wake(index);
        };
        self.drive(index, None, |node, now, out| node.handle_timeout(now, out));
        self.note_clients(index);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let details = &mut slot.details;
        if now.since(details.spins_since) > SPINS_WITHIN {
            (details.spins, details.spins_since) = (0, now);
        }
        details.spins += 1;
        if details.spins > SPINS_MAX {
            let why = wish.reason;
            let detail = format!(
                "woken {SPINS_MAX} times within {SPINS_WITHIN:?} by itself, last to: {why}"
            );
            self.breach(index, Breach { rule: Rule::Spin, detail });
        }
    }

    /// Calls a node with what its clock shows, and notes what it reports. What it gives for the TAP
    /// is handed over; what it gives for the radio waits to be sent.
    pub(super) fn have(
        &mut self,
        index: usize,
        cause: Option<Trigger<'_>>,
        call: impl FnOnce(&mut dyn Node, Timestamp, &mut Replies),
    ) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(index) else { return };
        let clock = slot.clock(now);
        let Some(node) = slot.node.as_deref_mut() else { return };
        let mut out = std::mem::take(&mut self.replies);
        let before = out.as_slice().len();
        call(node, clock, &mut out);

        let mut events: u16 = 0;
        let mut has_moved = false;
        while let Some(event) = node.poll_event() {
            if let Event::UpstreamChanged { to, .. } = &event {
                slot.details.attachment = *to;
                has_moved = true;
            }
            self.trace.add(now, What::Event { node: index, event: event.clone() });
            self.events.push((now, NodeIndex(index), event));
            events += 1;
            if events > SPINS_MAX {
                let detail = "events without end".to_owned();
                self.breach(index, Breach { rule: Rule::Spin, detail });
                return;
            }
        }
        let has_lan = slot.lan_up;
        self.note_wake(index);
        if has_moved
            && self.holds_to_rules
            && let Some(detail) = self.cycle_through(index)
        {
            self.breach(index, Breach { rule: Rule::Cycle, detail });
        }
        for reply in out.as_slice().iter().skip(before) {
            match reply.interface() {
                Interface::Radio => self.judge(index, &reply.frame(), cause),
                Interface::Tap if has_lan => self.out_of_tap(index, &reply.frame(), cause),
                Interface::Tap => {}
            }
        }
        self.replies = out;
    }

    /// Looks at a frame a node gives for the radio.
    fn judge(&mut self, index: usize, frame: &[u8], cause: Option<Trigger<'_>>) {
        let Some(subject) = self.subject(index).filter(|_| self.holds_to_rules) else { return };
        let judged = self.checker.sends(subject, frame, cause);
        if let Err(breach) = judged
            && self.slots.get(index).is_some_and(|slot| !slot.details.forges)
        {
            self.breach(index, breach);
        }
    }

    /// Asks a node, and its outbox, when they want to be woken.
    pub(super) fn note_wake(&mut self, index: usize) {
        let now = self.now;
        let stale = self.outbox_expires(index);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(node) = &slot.node else { return };
        let wake = node.poll_timeout().map(|clock| slot.when(clock)).into_iter().chain(stale).min();
        let wake = wake.map(|wake| wake.max(now));
        if wake != slot.wake {
            slot.wake = wake;
            self.plan_wake(index);
        }
    }

    /// Plans to wake a node when it wants to. A wish that is put off, as most are with every frame
    /// heard, costs nothing: the plan made before it stands, and looks again.
    fn plan_wake(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(wake) = slot.wake else { return };
        if slot.wake_planned.is_none_or(|planned| wake < planned) {
            slot.wake_planned = Some(wake);
            let life = slot.life;
            self.plan(wake, SimEvent::Wake { node: index, life });
        }
    }

    /// The way from a node over upstreams towards its RSU, if it comes back to the node.
    fn cycle_through(&self, index: usize) -> Option<String> {
        let rsu = self.slots.get(index)?.details.attachment?.rsu;
        let mut at = index;
        let mut way = vec![at];
        for _ in 0..self.slots.len() {
            let attachment = self.slots.get(at)?.details.attachment.filter(|to| to.rsu == rsu)?;
            at = *self.ids.get(&attachment.upstream)?;
            way.push(at);
            if at == index {
                let way: Vec<String> = way.iter().map(|&n| NodeIndex(n).to_string()).collect();
                return Some(way.join(" to "));
            }
        }
        None
    }

    /// A frame is on its way to everyone who may hear it.
    pub(super) fn fly(&mut self, flight: Arc<Flight>) {
        let (index, to, crc) = (flight.from, flight.to, flight.crc);
        if self.placed.is_some() {
            return self.radiate(flight);
        }

        let mut has_left = false;
        let Self { now, serial, queue, slots, paths, trace, hears_all, retries, .. } = self;
        for (&receiver, path) in paths.get_mut(index).into_iter().flatten() {
            let Some(slot) = slots.get(receiver) else { continue };
            let is_for_it = to.is_group() || to == slot.mac || *hears_all;
            if path.cut || !is_for_it || slot.node.is_none() {
                continue;
            }
            let retries = if to == slot.mac { *retries } else { 0 };
            let mut tries_lost = 0;
            while tries_lost <= retries && path.dice.chance(path.link.loss) {
                tries_lost += 1;
            }
            if tries_lost > retries {
                trace.add(*now, What::Lost { from: index, to: receiver, crc });
                continue;
            }
            let sent = *now + RETRY_AFTER * tries_lost;
            let copies = if path.dice.chance(path.link.duplicate) { 2 } else { 1 };
            has_left |= to == slot.mac;
            for _ in 0..copies {
                *serial += 1;
                queue.push(Reverse(Entry {
                    time: sent + path.link.delay + path.dice.up_to(path.link.jitter),
                    serial: *serial,
                    what: SimEvent::Arrive {
                        to: receiver,
                        life: slot.life,
                        flight: Arc::clone(&flight),
                    },
                }));
            }
        }
        if !has_left {
            self.note_lost(&flight);
            if self.retries > 0 && !to.is_group() {
                let given_up = self.now + RETRY_AFTER * (self.retries + 1);
                self.note_unacknowledged(given_up, &flight);
            }
        }
    }

    fn arrive(&mut self, index: usize, life: u32, flight: Arc<Flight>) {
        // Cut, out of range or restarted meanwhile: what was under way is lost.
        let is_same = self.slots.get(index).is_some_and(|slot| slot.life == life);
        if is_same && self.passes(flight.from, index) {
            let path = self.paths.get(flight.from).and_then(|paths| paths.get(&index));
            let dbm = path.and_then(|path| path.strength).map(|strength| {
                let seed = subseed(self.seed, STRENGTH_SEED);
                let mut luck = Luck::new(seed, flight.from, index, flight.number);
                whole_dbm(strength.draw(&mut luck))
            });
            self.hear(index, &flight, dbm);
        } else if self.slots.get(index).is_some_and(|slot| slot.mac == flight.to) {
            self.note_lost(&flight);
        }
    }

    /// Can this node send and receive at all?
    pub(super) fn is_on_air(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(Slot::is_on_air)
    }

    /// Would a frame from the one reach the other now?
    pub(super) fn passes(&self, from: usize, to: usize) -> bool {
        let path = self.paths.get(from).and_then(|paths| paths.get(&to));
        self.is_on_air(from)
            && self.is_on_air(to)
            && path.is_some_and(|path| !path.cut && path.link.loss < 1.0)
    }

    /// A node hands a frame to its TAP: to the LAN it is plugged into, or to the clients behind it.
    fn out_of_tap(&mut self, index: usize, frame: &[u8], cause: Option<Trigger<'_>>) {
        let Some(subject) = self.subject(index) else { return };
        let (len, crc) = (frame.len(), crc32fast::hash(frame));
        self.trace.add(self.now, What::OutOfTap { node: index, len, crc });
        if self.holds_to_rules
            && let Err(breach) = self.checker.hands_over(subject, frame, cause)
        {
            return self.breach(index, breach);
        }
        if let Some(taps) = &mut self.taps {
            taps.push(TapDelivery {
                time: self.now,
                node: NodeIndex(index),
                frame: frame.to_vec(),
            });
        }
        match self.slots.get(index).and_then(|slot| slot.details.lan) {
            Some((lan, port)) => self.enter_lan(lan, port, frame),
            None => {
                let Some(slot) = self.slots.get_mut(index) else { return };
                let clients = std::mem::take(&mut slot.details.clients);
                for &client in &clients {
                    self.reach(client, index, frame);
                }
                if let Some(slot) = self.slots.get_mut(index) {
                    slot.details.clients = clients;
                }
            }
        }
    }

    fn enter_lan(&mut self, lan: usize, from: LanPort, frame: &[u8]) {
        let Some(slot) = self.lans.get_mut(lan) else { return };
        let shared: Arc<[u8]> = frame.into();
        // Whose TAP it came out of; a frame of another client breaks no rule on the switch.
        let by = match slot.plugs.get(from.0) {
            Some(Plug::Node(node)) => *node,
            _ => 0,
        };
        let plugs: Vec<Plug> = slot
            .switch
            .forward(self.now, from, frame)
            .into_iter()
            .filter_map(|port| slot.plugs.get(port.0).copied())
            .collect();
        for plug in plugs {
            let frame = Arc::clone(&shared);
            let what = match plug {
                Plug::Node(node) => SimEvent::IntoTap { node, frame },
                Plug::Client(client) => SimEvent::Reach { client, by, frame },
            };
            self.plan(self.now + LAN_DELAY, what);
        }
    }

    /// A frame reached a client's network card, which takes what is for it or for all.
    fn reach(&mut self, index: usize, by: usize, frame: &[u8]) {
        let Some(client) = self.clients.get(index) else { return };
        let Some((to, from)) = addresses(frame) else { return };
        if from == client.mac || !(to == client.mac || to.is_group()) {
            return;
        }
        let Some(numbered) = Numbered::parse(frame) else { return };
        let is_on_lan = matches!(client.home, Home::Lan(..));
        let (flow, number) = (numbered.flow.0, numbered.number);
        self.trace.add(self.now, What::Received { client: index, flow, number });
        if let Some((_, log)) = self.flows.get_mut(flow as usize) {
            log.note_received(self.now, ClientIndex(index), number);
        }
        // Behind a TAP the node that handed it over was checked already; on a LAN it may be two.
        let receiver = Receiver::Client(index, self.rsu_starts);
        if is_on_lan
            && self.holds_to_rules
            && let Err(breach) = self.checker.received(receiver, numbered)
        {
            self.breach(by, breach);
        }
    }

    /// A client sends the next frame of a flow.
    fn emit(&mut self, index: usize) {
        let Some((flow, log)) = self.flows.get_mut(index) else { return };
        let flow = *flow;
        let number = u32::try_from(log.sent().len()).unwrap_or(u32::MAX);
        let target = match flow.to {
            Target::Client(client) => self.clients.get(client.0).map(|client| client.mac),
            Target::Everyone => Some(Mac::BROADCAST),
            Target::Nobody(mac) => Some(mac),
        };
        let (Some(to), Some(from)) = (target, self.clients.get(flow.from.0)) else { return };
        log.note_sent(self.now);
        let name = FlowIndex(u32::try_from(index).unwrap_or(u32::MAX));
        let frame = Numbered { flow: name, number }.emit(to, from.mac, flow.size);
        match from.home {
            Home::Tap(node) => self.enter_tap(node, &frame),
            Home::Lan(lan, port) => self.enter_lan(lan, port, &frame),
        }
        self.plan_frame(index, number.saturating_add(1), self.now);
    }

    /// Plans the frame of a flow with this number, after the one before it.
    pub(super) fn plan_frame(&mut self, index: usize, number: u32, after: Timestamp) {
        let Some((flow, _)) = self.flows.get(index) else { return };
        let mut luck = Luck::new(subseed(self.seed, FLOW_SEED), index, 0, number.into());
        if let Some(time) = flow.time_of(number, after, &mut luck) {
            self.plan(time, SimEvent::Emit { flow: index });
        }
    }

    pub(super) fn segment_of(&self, index: usize) -> Segment {
        match self.slots.get(index).and_then(|slot| slot.details.lan) {
            Some((lan, _)) => Segment::Lan(lan),
            None => Segment::Tap(index),
        }
    }

    pub(super) fn subject(&self, index: usize) -> Option<Subject> {
        let segment = self.segment_of(index);
        let slot = self.slots.get(index)?;
        slot.node.as_ref()?;
        Some(Subject { index, life: slot.life, id: slot.details.id, mac: slot.mac, segment })
    }

    pub(super) fn breach(&mut self, index: usize, breach: Breach) {
        if breach.rule == Rule::Spin {
            // Time would never pass again: this ends the run, whatever was broken before.
            (self.breaches, self.violation) = (None, None);
        }
        if let Some(breaches) = &mut self.breaches {
            *breaches += 1;
        }
        if self.violation.is_none() {
            self.violation = Some(Box::new(Violation {
                seed: self.seed,
                time: self.now,
                node: NodeIndex(index),
                rule: breach.rule,
                detail: breach.detail,
                trace: self.trace.last(),
            }));
        }
    }
}
