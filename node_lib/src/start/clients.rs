//! Which clients a node knows again after a restart: what is noted while it runs, and what is still
//! true of that at the next start.
//!
//! A client that never speaks is known only because it once did. A restart forgets it, and from
//! then on no RSU hears of it: at the next hand-over it cannot be reached. So a daemon with a state
//! file notes who is behind its TAP, and tells its next start ([`Node::handle_clients`]). The file
//! is the shell's; when something is noted, and what a note is worth later, is decided here, for
//! daemon and simulation.
//!
//! [`Node::handle_clients`]: crate::control::node::Node::handle_clients

use std::time::Duration;

use crate::messages::control::announcement::Client;
use crate::time::Timestamp;

/// Clients are noted no more often than this: a vehicle's LAN changes seldom, and flash memory
/// wears out. What a client that comes now costs is that it is forgotten if the daemon dies within
/// that time.
pub const NOTE_AFTER: Duration = Duration::from_secs(2);

/// They are noted again after this although nobody came or went, so that the note knows how long
/// ago each was heard. A client is remembered for an hour, less this at most.
pub const NOTE_EVERY: Duration = Duration::from_secs(300);

/// Clients remembered: as many as a vehicle's LAN has at most, three announcements long.
pub const CLIENTS_MAX: usize = 512;

/// A client that says nothing is remembered for an hour: a camera or a sign in a vehicle does not
/// move elsewhere, and must stay reachable although it never speaks.
pub const AGE_MAX: Duration = Duration::from_secs(3600);

/// A client behind the TAP, and for how long it has been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remembered {
    /// The client.
    pub client: Client,
    /// Since its last frame.
    pub silent_for: Duration,
}

/// Decides when clients are noted.
#[derive(Clone, Debug)]
pub struct Notes {
    /// Who was noted last, in order; `None` if the note was lost or there was none.
    noted: Option<Vec<Client>>,
    noted_at: Timestamp,
    look_at: Timestamp,
}

impl Notes {
    /// For a node that starts `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { noted: None, noted_at: now, look_at: now + NOTE_AFTER }
    }

    /// When to look next.
    pub fn deadline(&self) -> Timestamp {
        self.look_at
    }

    /// What has to be noted now, if anything. `clients` is asked only when the time has come.
    pub fn drive(
        &mut self,
        now: Timestamp,
        clients: impl FnOnce() -> Vec<Remembered>,
    ) -> Option<Vec<Remembered>> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now + NOTE_AFTER;
        let is_old = now.since(self.noted_at) >= NOTE_EVERY;
        let clients = clients();
        let is_same = self.noted.as_ref().is_some_and(|noted| {
            noted.iter().eq(clients.iter().map(|remembered| &remembered.client))
        });
        if is_same && !is_old {
            return None;
        }
        self.noted = Some(clients.iter().map(|remembered| remembered.client).collect());
        self.noted_at = now;
        Some(clients)
    }

    /// What was to be noted last was not: it is noted at the next look.
    pub fn lose(&mut self) {
        self.noted = None;
    }
}

/// What a note is worth this much later: who is still remembered, those heard last first.
pub fn after(noted: Vec<Remembered>, elapsed: Duration) -> Vec<Remembered> {
    let mut clients: Vec<_> = noted
        .into_iter()
        .map(|Remembered { client, silent_for }| Remembered {
            client,
            silent_for: silent_for.saturating_add(elapsed),
        })
        .filter(|remembered| remembered.silent_for < AGE_MAX)
        .collect();
    clients.sort_unstable_by_key(|remembered| (remembered.silent_for, remembered.client));
    clients.truncate(CLIENTS_MAX);
    clients
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::Mac;

    fn nth(n: u16, silent_secs: u64) -> Remembered {
        let [high, low] = n.to_be_bytes();
        let client = Client { vlan: 0, mac: Mac([2, 0, 0, 0, high, low]) };
        Remembered { client, silent_for: Duration::from_secs(silent_secs) }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn who_came_or_went_is_noted_after_two_seconds_and_all_again_after_five_minutes() {
        let mut notes = Notes::new(at(0));
        assert_eq!(notes.drive(at(1), || panic!("it is not time")), None);
        assert_eq!(notes.drive(at(2), || vec![nth(1, 2)]), Some(vec![nth(1, 2)]));
        assert_eq!(notes.drive(at(4), || vec![nth(1, 4)]), None, "the same one");
        let both = vec![nth(1, 6), nth(2, 1)];
        assert_eq!(notes.drive(at(6), || both.clone()), Some(both.clone()));
        assert_eq!(notes.drive(at(305), || both.clone()), None);
        assert_eq!(notes.drive(at(307), || both.clone()), Some(both));
        assert_eq!(notes.drive(at(309), Vec::new), Some(Vec::new()), "all have gone");
    }

    #[test]
    fn a_note_that_was_lost_is_made_at_the_next_look() {
        let mut notes = Notes::new(at(0));
        assert!(notes.drive(at(2), || vec![nth(1, 0)]).is_some());
        notes.lose();
        assert_eq!(notes.deadline(), at(4));
        assert_eq!(notes.drive(at(4), || vec![nth(1, 2)]), Some(vec![nth(1, 2)]));
    }

    #[test]
    fn a_note_grows_old_and_forgets_who_was_silent_for_an_hour() {
        let noted = vec![nth(1, 3000), nth(2, 10), nth(3, 3589)];
        let later = after(noted, Duration::from_secs(11));
        assert_eq!(later, [nth(2, 21), nth(1, 3011)]);
        assert_eq!(after(later, AGE_MAX), []);
    }

    #[test]
    fn of_too_many_those_heard_last_are_kept() {
        let noted = (0..600).map(|n| nth(n, u64::from(n))).collect();
        let kept = after(noted, Duration::ZERO);
        assert_eq!((kept.len(), kept.last()), (CLIENTS_MAX, Some(&nth(511, 511))));
    }
}
