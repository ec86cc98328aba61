//! An announcement that is lost, with all its repetitions, is healed by the digest in the next
//! periodic reply.
//!
//! `V2X_SIM_RUNS` for more seeds than the 100 of every run.

use std::collections::BTreeSet;
use std::time::Duration;

use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Client, client_digest};
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::Dice;

use crate::common::{Wrong, at, ms, percentile, radio, run_all, seeds, spread};

#[test]
fn a_lost_set_is_healed_by_the_next_reply() {
    let test = "a_lost_set_is_healed_by_the_next_reply";
    let times = run_all(test, seeds(100), lose_and_heal);
    let (whole, after): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    println!("from the end of silence: {}", spread(whole.clone()));
    println!("from the question: {}", spread(after));
    let mut whole = whole;
    whole.sort_unstable();
    assert!(percentile(&whole, 0.5) <= interval());
}

/// The longest time between two replies: a quarter more than the mean.
fn interval() -> Duration {
    ms(1250)
}

/// At a loss of 5 to 30 %, and with 1 to 500 clients: how long until the RSU has the set, from the
/// end of a silence in which every announcement was lost, and from the first question the OBU
/// heard.
fn lose_and_heal(seed: u64) -> Result<(Duration, Duration), Wrong> {
    let mut pair = Pair::new(seed);
    let mut dice = Dice::new(seed, 2);
    pair.speak(0);
    pair.run_until(at(3000));
    let count = 1 + dice.below(500) as u16;
    (1..=count).for_each(|n| pair.speak(n));
    let digest = client_digest(&pair.set);
    // Long enough for all repetitions, too short to be taken for silence.
    pair.is_mute = true;
    pair.run_until(at(7000));
    if pair.accepted(digest) {
        return Err("the announcement was not lost".into());
    }
    pair.is_mute = false;
    pair.loss = 0.05 * (1 + seed % 6) as f64;
    pair.asked_at = None;
    let (mut now, end) = (at(7000), at(7000) + interval() * 12);
    while !pair.accepted(digest) {
        now += ms(5);
        pair.run_until(now);
        if now > end {
            return Err(format!("{count} clients are not known at {now}, {:?}", pair.loss).into());
        }
    }
    let asked_at = pair.asked_at.unwrap_or(now);
    let healed = (now.since(at(7000)), now.since(asked_at));
    if healed.1 > interval() {
        return Err(format!("asked at {asked_at}, but {count} clients known at {now}").into());
    }
    pair.knows_all().map(|()| healed)
}

/// An OBU and an RSU in each other's range.
struct Pair {
    obu: Obu,
    rsu: Rsu,
    now: Timestamp,
    out: Replies,
    dice: Dice,
    loss: f64,
    /// Neither announcements nor replies get through.
    is_mute: bool,
    /// When the OBU was first asked for its clients.
    asked_at: Option<Timestamp>,
    /// Parts of sets acknowledged by the RSU: digest, part, parts.
    acknowledged: BTreeSet<(u32, u8, u8)>,
    /// Clients behind the OBU.
    set: Vec<Client>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let now = Timestamp::ZERO;
        let start = |n, seed| Start { seed, ..Start::new(radio(n)) };
        let rsu = rsu_lib::Settings::default().config(&start(0, seed));
        let obu = obu_lib::Settings::default().config(&start(1, seed + 1));
        Self {
            obu: Obu::new(obu, now),
            rsu: Rsu::new(rsu, now),
            now,
            out: Replies::new(),
            dice: Dice::new(seed, 1),
            loss: 0.0,
            is_mute: false,
            asked_at: None,
            acknowledged: BTreeSet::new(),
            set: Vec::new(),
        }
    }

    /// A client behind the OBU speaks; what it says reaches nobody.
    fn speak(&mut self, n: u16) {
        let [high, low] = n.to_be_bytes();
        let mac = Mac([2, 0, 0, 9, high, low]);
        let mut frame = [&[0xff; 6][..], &mac.0, &[0x88, 0xb6]].concat();
        frame.resize(60, 0);
        self.obu.handle_tap(self.now, &frame, &mut self.out);
        self.out.recycle();
        self.set.push(Client { vlan: 0, mac });
    }

    /// The RSU has acknowledged all parts of the set with this digest.
    fn accepted(&self, digest: u32) -> bool {
        let mut parts = self.acknowledged.iter().filter(|(of, ..)| *of == digest);
        let first = parts.clone().next();
        first.is_some_and(|(.., count)| parts.by_ref().count() == usize::from(*count))
    }

    fn known(&self) -> Vec<Client> {
        self.rsu.clients_of(self.obu.id())
    }

    fn knows_all(&self) -> Result<(), Wrong> {
        let known = self.known().len();
        if self.known() == self.set {
            Ok(())
        } else {
            Err(format!("{known} of {} clients known at {}", self.set.len(), self.now).into())
        }
    }

    fn run_until(&mut self, until: Timestamp) {
        while let Some(due) = self.obu.poll_timeout().min(self.rsu.poll_timeout())
            && due <= until
        {
            self.now = self.now.max(due);
            self.obu.handle_timeout(self.now, &mut self.out);
            let mut up = wire(self.out.take());
            self.rsu.handle_timeout(self.now, &mut self.out);
            let mut down = wire(self.out.take());
            while !(up.is_empty() && down.is_empty()) {
                for frame in std::mem::take(&mut up) {
                    down.extend(self.carry_up(frame));
                }
                for frame in std::mem::take(&mut down) {
                    up.extend(self.carry_down(&frame));
                }
            }
        }
        self.now = until;
    }

    fn carry_up(&mut self, frame: Vec<u8>) -> Vec<Vec<u8>> {
        let (is_announcement, is_reply) = match control(&frame) {
            Some(Control::Announcement(_)) => (true, false),
            Some(Control::HeartbeatReply(_)) => (false, true),
            _ => (false, false),
        };
        let is_mute = self.is_mute && (is_announcement || is_reply);
        if is_mute || self.dice.chance(self.loss) {
            return Vec::new();
        }
        self.rsu.handle_wire(self.now, &frame, &mut self.out);
        let answers = wire(self.out.take());
        for answer in &answers {
            if let Some(Control::AnnouncementAck(ack)) = control(answer)
                && ack.status == AckStatus::Accepted
            {
                self.acknowledged.insert((ack.digest, ack.part, ack.parts));
            }
        }
        answers
    }

    fn carry_down(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        if self.dice.chance(self.loss) {
            return Vec::new();
        }
        if let Some(Control::AnnouncementAck(ack)) = control(frame)
            && ack.status == AckStatus::SendAll
        {
            self.asked_at.get_or_insert(self.now);
        }
        self.obu.handle_wire(self.now, frame, &mut self.out);
        wire(self.out.take())
    }
}

fn control(frame: &[u8]) -> Option<Control<'_>> {
    match Message::try_from(frame).unwrap().packet {
        PacketType::Control(control) => Some(control),
        PacketType::Data(_) | PacketType::Fragment(_) => None,
    }
}

fn wire(replies: Vec<ReplyType>) -> Vec<Vec<u8>> {
    let flat = |reply| match reply {
        ReplyType::WireFlat(flat) => Some(flat),
        _ => None,
    };
    replies.into_iter().filter_map(flat).collect()
}
