//! What an OBU says changes: it announces its clients, answers a heartbeat, or says goodbye.

use node_lib::Timestamp;
use node_lib::messages::control::announcement::{Announcement, Client};
use node_lib::messages::control::heartbeat::HeartbeatReply;

use super::client_set::CLAIMS_MAX;
use super::room::OBUS_MAX;
use super::word::{Judged, Says, WordVerdict};
use super::{Obus, Registered, Standing};

/// What an announcement means to us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// There is no room for another OBU.
    Refused,
    /// Nothing is concluded from it yet, and nothing is said: if it is true it will be repeated.
    Unproven,
    /// The OBU is known to have said otherwise, with this epoch: it must use a higher one.
    Stale(u32),
    /// Accepted.
    Accepted(Accepted),
}

/// What an accepted claim changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The OBU is attached to us.
    pub(crate) is_attached: bool,
    /// It was attached until now.
    pub(crate) has_left: bool,
    /// It was not said before: its clients may be taken over from where they are.
    pub(crate) is_new: bool,
    /// The OBU has come, and all its clients are known for the first time since.
    pub(crate) has_come: bool,
    /// All its clients, if they are known, and this is new.
    pub(crate) set: Option<Vec<Client>>,
}

/// What became of a goodbye.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Farewell {
    /// The OBU was attached until now.
    pub(crate) was_attached: bool,
    /// With it two nodes are known to have this id, which is said once.
    pub(crate) is_duel: bool,
}

impl Obus {
    /// An OBU announces (a part of) its clients. The verdict says whether the way it came is the
    /// way down to it.
    pub(crate) fn claim(
        &mut self,
        now: Timestamp,
        announcement: &Announcement<'_>,
        says: Says,
    ) -> (Judged, Claim) {
        let Announcement { origin: obu, part, parts, digest, .. } = *announcement;
        let word = says.word();
        let is_circular = self.closes_circle(obu, says.edge);
        let standing = if announcement.standby { Standing::Standby } else { Standing::Attached };
        let is_unknown = !self.by_id.contains_key(&obu);
        if is_unknown && is_circular {
            return (WordVerdict::Circular.into(), Claim::Unproven);
        }
        let mut evicted = 0;
        if is_unknown {
            let Some(gone) = self.make_room() else {
                return (WordVerdict::Unknown.into(), Claim::Refused);
            };
            evicted = gone;
            self.by_id.insert(obu, Registered::new(now, says, digest, parts));
        }
        let Some(known) = self.by_id.get_mut(&obu) else {
            return (WordVerdict::Unknown.into(), Claim::Refused);
        };
        let judged = if is_unknown { WordVerdict::Newest.into() } else { known.judge(now, &says) };
        let verdict = judged.verdict.unless(is_circular);
        let judged = Judged { verdict, evicted, ..judged };
        let is_last = verdict == WordVerdict::Newest;
        let is_other_set = digest != known.digest || known.parts.len() != usize::from(parts);
        match verdict {
            WordVerdict::Unproven | WordVerdict::Circular => return (judged, Claim::Unproven),
            WordVerdict::Old
                if word.epoch != known.word.epoch
                    || standing != known.standing
                    || is_other_set
                    || known.is_contested(now, word.seq, says.edge) =>
            {
                if known.left.contradict(now, says.edge) {
                    self.untold.insert(obu);
                }
                return (judged, Claim::Stale(known.word.epoch));
            }
            _ => {}
        }
        let is_raised = (word.boot, word.epoch) != (known.word.boot, known.word.epoch);
        let was = known.standing;
        if is_other_set {
            known.begin_set(&mut self.claims, obu, digest, parts);
        }
        let room = CLAIMS_MAX.saturating_sub(self.claims.len());
        let is_new_part = known.keep(part, announcement.clients.iter(), room);
        if is_new_part {
            known.index(&mut self.claims, obu, part, now);
        }
        if is_last {
            if known.leave(now, standing, &says, is_other_set) {
                self.untold.insert(obu);
            }
            self.attached = known.follow(now, standing, says, self.attached);
        }
        let is_new = is_new_part || is_raised || was != known.standing;
        let set = if is_new { known.complete_set() } else { None };
        if set.is_some() {
            known.end_set(&mut self.claims, obu);
        }
        let has_come = known.is_attached() && set.is_some() && !known.has_come;
        known.has_come |= has_come;
        let accepted = Accepted {
            is_attached: known.is_attached(),
            has_left: was == Standing::Attached && !known.is_attached(),
            is_new: known.is_attached() && is_new,
            has_come,
            set,
        };
        (judged, Claim::Accepted(accepted))
    }

    /// An OBU answers a heartbeat, and says by the way how it stands to us. `None`: nothing changes
    /// but its upstream.
    pub(crate) fn hear_reply(
        &mut self,
        now: Timestamp,
        reply: &HeartbeatReply,
        says: Says,
    ) -> (Judged, Option<Accepted>) {
        let obu = reply.origin;
        let is_circular = self.closes_circle(obu, says.edge);
        if reply.standby && !self.by_id.contains_key(&obu) {
            if is_circular {
                return (WordVerdict::Circular.into(), None);
            }
            let Some(evicted) = self.make_room() else {
                return (WordVerdict::Unknown.into(), None);
            };
            // Others come through it. That it may be made up makes it no worse than an
            // announcement.
            let mut relay = Registered::new(now, says, reply.digest, 1);
            relay.standing = Standing::Standby;
            self.by_id.insert(obu, relay);
            return (Judged { evicted, ..WordVerdict::Newest.into() }, None);
        }
        let Some(known) = self.by_id.get_mut(&obu) else {
            return (WordVerdict::Unknown.into(), None);
        };
        let judged = known.judge(now, &says);
        let verdict = judged.verdict.unless(is_circular);
        let judged = Judged { verdict, ..judged };
        if verdict == WordVerdict::Old
            && known.is_contested(now, says.order.seq, says.edge)
            && known.left.contradict(now, says.edge)
        {
            self.untold.insert(obu);
        }
        if verdict != WordVerdict::Newest {
            return (judged, None);
        }
        let was = known.standing;
        let has_set = known.digest == reply.digest && known.is_complete();
        let standing = match (reply.standby, has_set) {
            // It may be that we hold no set of it yet; that it is not here any more is certain.
            (true, _) => Standing::Standby,
            (false, true) => Standing::Attached,
            // Its upstream is news in any case.
            (false, false) => was,
        };
        if known.leave(now, standing, &says, false) {
            self.untold.insert(obu);
        }
        self.attached = known.follow(now, standing, says, self.attached);
        if known.standing == was {
            return (judged, None);
        }
        let set = known.complete_set();
        let has_come = known.is_attached() && !known.has_come;
        known.has_come |= has_come;
        let accepted = Accepted {
            is_attached: known.is_attached(),
            has_left: was == Standing::Attached,
            is_new: known.is_attached(),
            has_come,
            set,
        };
        (judged, Some(accepted))
    }

    /// The OBU said goodbye.
    pub(crate) fn hear_goodbye(
        &mut self,
        now: Timestamp,
        reply: &HeartbeatReply,
        says: Says,
    ) -> Farewell {
        let Some(known) = self.by_id.get_mut(&reply.origin) else {
            // What it said before may still come.
            if self.by_id.len() < OBUS_MAX {
                let gone = Registered::new(now, says, reply.digest, 1);
                self.by_id.insert(reply.origin, gone);
            }
            return Farewell::default();
        };
        let Judged { verdict, is_duel, .. } = known.judge(now, &says);
        if verdict != WordVerdict::Newest {
            return Farewell { is_duel, ..Farewell::default() };
        }
        let was_attached = known.is_attached();
        // What is under way to it goes the way it was.
        let says = Says { edge: known.edge, ..says };
        if known.leave(now, Standing::Gone, &says, false) {
            self.untold.insert(reply.origin);
        }
        self.attached = known.follow(now, Standing::Gone, says, self.attached);
        Farewell { was_attached, is_duel }
    }
}

impl Registered {
    /// Takes the word for the OBU's last. Returns how many are attached then.
    fn follow(&mut self, now: Timestamp, standing: Standing, says: Says, attached: usize) -> usize {
        let others = attached - usize::from(self.is_attached());
        self.stand(standing);
        self.word = says.word();
        self.said = now;
        if self.edge.via != says.edge.via && !says.at_risk.is_zero() {
            self.moved = Some(now.before(says.at_risk));
        }
        self.edge = says.edge;
        self.passes_on = true;
        self.within = says.within;
        self.heard = now;
        self.knocks = 0;
        others + usize::from(self.is_attached())
    }
}

#[cfg(test)]
mod tests {
    use node_lib::messages::control::announcement::client_digest;

    use super::super::scene::*;
    use super::*;

    #[test]
    fn who_was_on_standby_comes_with_all_clients_at_its_first_word() {
        let mut obus = Obus::default();
        let set = [client(1), client(2)];
        let digest = client_digest(&set);
        for (part, clients) in (0..).zip([&set[..1], &set[1..]]) {
            claim_part(&mut obus, (OBU, Said(1, 5, 1, true)), (part, 2), digest, clients);
        }
        // Of the two parts one arrives.
        let says = (OBU, Said(1, 6, 3, false));
        assert_eq!(claim_part(&mut obus, says, (1, 2), digest, &set[1..]), come(&set));
        assert_eq!(obus.attached(), 1);
    }

    #[test]
    fn a_reply_alone_makes_an_obu_on_standby_attached_when_its_set_is_the_one_we_hold() {
        let mut obus = Obus::default();
        let set = [client(1)];
        claim(&mut obus, Said(1, 5, 1, true), &set);
        assert_eq!(hear_reply(&mut obus, &reply(Said(1, 6, 3, false), 7)), None);
        let now = hear_reply(&mut obus, &reply(Said(1, 6, 4, false), client_digest(&set)));
        assert_eq!(now.map(Claim::Accepted), Some(come(&set)));
        // The standby it sent before comes late.
        let late = hear_reply(&mut obus, &reply(Said(1, 5, 2, true), client_digest(&set)));
        assert_eq!((late, obus.attached()), (None, 1));
    }

    #[test]
    fn standby_with_a_higher_epoch_means_that_the_obu_has_left() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        let left = accepted(claim(&mut obus, Said(1, 6, 2, true), &[client(1)]));
        assert!(left.has_left && !left.is_attached);
        let late = accepted(claim(&mut obus, Said(1, 6, 1, true), &[client(1)]));
        assert_eq!((late.has_left, late.is_new), (false, false));
    }

    #[test]
    fn a_claim_from_before_the_goodbye_is_not_new() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        let goodbye = HeartbeatReply { goodbye: true, ..reply(Said(1, 5, 9, false), 0) };
        assert!(hear_goodbye(&mut obus, &goodbye));
        assert!(!hear_goodbye(&mut obus, &goodbye), "said three times");
        // Late, or somebody else said the goodbye: then the OBU answers with a higher epoch.
        assert_eq!(claim(&mut obus, Said(1, 5, 8, false), &[client(1)]), Claim::Stale(5));
        let back = accepted(claim(&mut obus, Said(1, 5, 10, false), &[client(1)]));
        assert!(back.is_attached && back.is_new && back.has_come);
    }
}
