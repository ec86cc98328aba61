//! Which client lives behind which originator: [`Translation`], the translation table of
//! batman-adv.
//!
//! A node announces its clients in its OGMs: a version, a checksum over all of them, and the last
//! changes as long as they are new. Who missed a change asks for the whole table; whoever on the
//! way has it answers.
//!
//! Simpler than `net/batman-adv/translation-table.c`:
//!
//! * A client does not roam. None in a scenario moves from one node to another; what moves are the
//!   nodes. This is in favour of the model. batman-adv also takes it for roaming when a switch
//!   floods a vehicle's frame to an RSU that does not know the claim. It tells the vehicle so
//!   (`batadv_send_roam_adv`), and sends frames to the wrong node until it speaks again. And a
//!   relay that knows a newer version of a table than a unicast frame bears drops that frame
//!   (`batadv_check_unicast_ttvn`); here it passes it on.
//! * A table is asked for and sent whole, where batman-adv may send the last changes alone: a few
//!   bytes against the model. There is one VLAN, and addresses of multicast groups are not
//!   announced: some bytes in its favour.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use node_lib::{Mac, Timestamp};

use super::wire::{
    TABLE_DIFF, TABLE_FULL, TABLE_REQUEST, TABLE_RESPONSE, TranslationTable, emit_table,
};

/// OGMs that carry a change again after the first (`BATADV_TT_OGM_APPEND_MAX`).
const REPEATS: u8 = 3;
/// A client that was silent for so long is gone (`BATADV_TT_LOCAL_TIMEOUT`, and of who is known by
/// a broadcast only `BATADV_TT_CLIENT_TEMP_TIMEOUT`).
const CLIENT_TIMEOUT: Duration = Duration::from_secs(600);
/// Nobody is asked twice within this (`BATADV_TT_REQUEST_TIMEOUT`).
const ASKS_EVERY: Duration = Duration::from_secs(3);

/// Clients of one node: what one frame of a radio of 1,500 bytes carries. batman-adv has no such
/// bound while fragments are on; here a newcomer is refused.
const CLIENTS_MAX: usize = 110;
/// Nodes whose clients are known, and clients known by a broadcast only; the oldest goes.
const TABLES_MAX: usize = 2048;
const HEARD_MAX: usize = 1024;

/// Another node's clients.
#[derive(Debug, Default)]
struct Remote {
    version: u8,
    clients: BTreeSet<Mac>,
    is_complete: bool,
    asked: Option<Timestamp>,
}

impl Remote {
    fn is(&self, version: u8, checksum: u32) -> bool {
        self.is_complete && self.version == version && self.checksum() == checksum
    }

    fn checksum(&self) -> u32 {
        checksum(&self.clients)
    }
}

/// A table to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) orig: Mac,
    version: u8,
    checksum: u32,
}

impl Missing {
    /// The question.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let Self { version, checksum, .. } = *self;
        emit_table(TABLE_REQUEST | TABLE_FULL, version, checksum, [].into_iter(), out);
    }
}

/// Clients of this node, and of all others.
#[derive(Debug, Default)]
pub(super) struct Translation {
    ours: BTreeMap<Mac, Timestamp>,
    /// Not announced yet, and announced last.
    pending: Vec<(Mac, bool)>,
    changes: Vec<(Mac, bool)>,
    version: u8,
    repeats: u8,
    /// As announced last.
    announced: BTreeSet<Mac>,
    remotes: BTreeMap<Mac, Remote>,
    /// Originators of each client.
    origins: BTreeMap<Mac, Vec<Mac>>,
    /// Clients whose broadcasts came before their node's table
    /// (`batadv_tt_add_temporary_global_entry`).
    heard: VecDeque<(Mac, Mac, Timestamp)>,
    /// Clients that found no room.
    pub(super) refused: u64,
}

/// Of a table: the same for the same clients, in whatever order they came. Not the polynomial of
/// batman-adv, as nothing but equality counts.
fn checksum(clients: &BTreeSet<Mac>) -> u32 {
    let one = |client: &Mac| {
        // FNV-1a (RFC 9923).
        client
            .0
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    };
    clients.iter().map(one).fold(0, |sum, hash| sum ^ hash)
}

impl Translation {
    /// A client of ours spoke.
    pub(super) fn note_ours(&mut self, now: Timestamp, client: Mac) {
        if let Some(seen) = self.ours.get_mut(&client) {
            *seen = now;
        } else if self.ours.len() < CLIENTS_MAX {
            self.ours.insert(client, now);
            self.pending.push((client, true));
        } else {
            self.refused += 1;
        }
    }

    /// Forgets clients that are silent; `keeps` is the node's own address, which stays.
    pub(super) fn purge(&mut self, now: Timestamp, keeps: Option<Mac>) {
        let Self { ours, pending, heard, .. } = self;
        ours.retain(|client, seen| {
            let stays = Some(*client) == keeps || now.since(*seen) <= CLIENT_TIMEOUT;
            if !stays {
                pending.push((*client, false));
            }
            stays
        });
        heard.retain(|(_, _, since)| now.since(*since) <= CLIENT_TIMEOUT);
    }

    /// Appends our table to an OGM that is made now: once for each, as it counts how often a change
    /// was sent.
    pub(super) fn announce(&mut self, out: &mut Vec<u8>) {
        if self.pending.is_empty() {
            match self.repeats {
                0 => self.changes.clear(),
                left => self.repeats = left - 1,
            }
        } else {
            self.changes = std::mem::take(&mut self.pending);
            self.changes.truncate(CLIENTS_MAX);
            self.announced = self.ours.keys().copied().collect();
            self.version = self.version.wrapping_add(1);
            self.repeats = REPEATS;
        }
        let changes = self.changes.iter().copied();
        emit_table(TABLE_DIFF, self.version, checksum(&self.announced), changes, out);
    }

    /// An OGM says what is behind its originator. Returns the table to be asked for, if it cannot
    /// be told from that.
    pub(super) fn hear(
        &mut self,
        now: Timestamp,
        orig: Mac,
        table: &TranslationTable<'_>,
    ) -> Option<Missing> {
        if !self.remotes.contains_key(&orig) && self.remotes.len() >= TABLES_MAX {
            self.refused += 1;
            return None;
        }
        let remote = self.remotes.entry(orig).or_default();
        if remote.is(table.version, table.checksum) {
            return None;
        }
        let is_first = !remote.is_complete && table.version == 1;
        let is_next = remote.is_complete && table.version == remote.version.wrapping_add(1);
        if is_first || is_next {
            for (client, is_there) in table.clients() {
                self.set(orig, client, is_there);
            }
            if let Some(remote) = self.remotes.get_mut(&orig)
                && table.clients().next().is_some()
            {
                (remote.version, remote.is_complete) = (table.version, true);
                if remote.checksum() == table.checksum {
                    return None;
                }
            }
        }
        let remote = self.remotes.get_mut(&orig)?;
        if remote.asked.is_some_and(|asked| now.since(asked) < ASKS_EVERY) {
            return None;
        }
        remote.asked = Some(now);
        Some(Missing { orig, version: table.version, checksum: table.checksum })
    }

    /// A question for the table of `orig`, which may be us. `false` if there is no answer here.
    pub(super) fn answer(
        &self,
        us: Mac,
        orig: Mac,
        question: &TranslationTable<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        if question.flags & TABLE_REQUEST == 0 {
            return false;
        }
        let (clients, version) = if orig == us {
            (&self.announced, self.version)
        } else {
            let known = self.remotes.get(&orig);
            match known.filter(|remote| remote.is(question.version, question.checksum)) {
                Some(remote) => (&remote.clients, remote.version),
                None => return false,
            }
        };
        let all = clients.iter().map(|client| (*client, true));
        emit_table(TABLE_RESPONSE | TABLE_FULL, version, checksum(clients), all, out);
        true
    }

    /// The table of an originator that was asked for.
    pub(super) fn take(&mut self, orig: Mac, table: &TranslationTable<'_>) {
        if table.flags & TABLE_RESPONSE == 0 || !self.remotes.contains_key(&orig) {
            return;
        }
        let clients: BTreeSet<Mac> = table.clients().map(|(client, _)| client).collect();
        let before = self.remotes.get(&orig).map(|remote| remote.clients.clone());
        for gone in before.unwrap_or_default().difference(&clients) {
            self.set(orig, *gone, false);
        }
        for client in clients {
            self.set(orig, client, true);
        }
        if let Some(remote) = self.remotes.get_mut(&orig) {
            (remote.version, remote.is_complete) = (table.version, true);
            remote.asked = None;
        }
    }

    fn set(&mut self, orig: Mac, client: Mac, is_there: bool) {
        let Some(remote) = self.remotes.get_mut(&orig) else { return };
        if is_there && remote.clients.len() >= CLIENTS_MAX && !remote.clients.contains(&client) {
            self.refused += 1;
            return;
        }
        if is_there && remote.clients.insert(client) {
            self.origins.entry(client).or_default().push(orig);
            self.heard.retain(|(heard, _, _)| *heard != client);
        } else if !is_there
            && remote.clients.remove(&client)
            && let Some(origins) = self.origins.get_mut(&client)
        {
            origins.retain(|origin| *origin != orig);
            if origins.is_empty() {
                self.origins.remove(&client);
            }
        }
    }

    /// A broadcast of a client came from this originator: unless it is announced, it is there from
    /// now on.
    pub(super) fn note_heard(&mut self, now: Timestamp, client: Mac, orig: Mac) {
        let is_announced = self.origins.contains_key(&client) || self.ours.contains_key(&client);
        let is_known = self.heard.iter().any(|(heard, by, _)| (*heard, *by) == (client, orig));
        if is_announced || is_known || !client.is_unicast() {
            return;
        }
        self.heard.retain(|(heard, _, _)| *heard != client);
        if self.heard.len() >= HEARD_MAX {
            self.heard.pop_front();
        }
        self.heard.push_back((client, orig, now));
    }

    /// An originator is gone, and its clients with it.
    pub(super) fn forget(&mut self, orig: Mac) {
        let clients = self.remotes.get(&orig).map(|remote| remote.clients.clone());
        for client in clients.unwrap_or_default() {
            self.set(orig, client, false);
        }
        self.remotes.remove(&orig);
        self.heard.retain(|(_, from, _)| *from != orig);
    }

    pub(super) fn is_ours(&self, client: Mac) -> bool {
        self.ours.contains_key(&client)
    }

    /// The originators a client may be reached by.
    pub(super) fn origins(&self, client: Mac) -> impl Iterator<Item = Mac> {
        let announced = self.origins.get(&client).into_iter().flatten().copied();
        let heard = self.heard.iter().filter(move |(heard, _, _)| *heard == client);
        announced.chain(heard.map(|(_, orig, _)| *orig))
    }

    /// Version of an originator's table, which goes with each frame to it.
    pub(super) fn version_of(&self, orig: Mac) -> u8 {
        self.remotes.get(&orig).map_or(0, |remote| remote.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const FAR: Mac = Mac([2, 0, 0, 0, 0, 3]);

    fn client(n: u8) -> Mac {
        Mac([2, 1, 0, 0, 0, n])
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(1000 * second)
    }

    fn tvlv(of: &mut Translation) -> Vec<u8> {
        let mut out = Vec::new();
        of.announce(&mut out);
        out
    }

    fn hear(by: &mut Translation, second: u64, tvlvs: &[u8]) -> Option<Missing> {
        by.hear(at(second), FAR, &TranslationTable::find(tvlvs).unwrap())
    }

    fn origins(by: &Translation, n: u8) -> Vec<Mac> {
        by.origins(client(n)).collect()
    }

    #[test]
    fn changes_go_with_four_ogms_and_who_hears_them_needs_no_more() {
        let (mut far, mut by) = (Translation::default(), Translation::default());
        far.note_ours(at(0), client(1));
        let lens: Vec<usize> = (0..5).map(|_| tvlv(&mut far).len()).collect();
        assert_eq!(lens, [28, 28, 28, 28, 16]);
        let mut far = Translation::default();
        far.note_ours(at(0), client(1));
        assert_eq!(hear(&mut by, 0, &tvlv(&mut far)), None);
        far.note_ours(at(1), client(2));
        assert_eq!(hear(&mut by, 1, &tvlv(&mut far)), None);
        assert_eq!((origins(&by, 1), origins(&by, 2)), (vec![FAR], vec![FAR]));
        // Silent for ten minutes.
        far.note_ours(at(500), client(2));
        far.purge(at(601), None);
        assert_eq!(hear(&mut by, 601, &tvlv(&mut far)), None);
        assert_eq!((origins(&by, 1), origins(&by, 2)), (vec![], vec![FAR]));
        by.forget(FAR);
        assert_eq!(origins(&by, 2), []);
    }

    #[test]
    fn who_missed_a_change_asks_and_anybody_who_has_the_table_answers() {
        let (mut far, mut near, mut late) =
            (Translation::default(), Translation::default(), Translation::default());
        for n in 1..=2 {
            far.note_ours(at(0), client(n));
            assert_eq!(hear(&mut near, 0, &tvlv(&mut far)), None);
        }
        let ogm = tvlv(&mut far);
        let missing = hear(&mut late, 9, &ogm).unwrap();
        assert_eq!(hear(&mut late, 10, &ogm), None, "asked a second ago");
        assert!(hear(&mut late, 12, &ogm).is_some());
        let (mut question, mut theirs, mut own) = (Vec::new(), Vec::new(), Vec::new());
        missing.emit(&mut question);
        let question = TranslationTable::find(&question).unwrap();
        assert!(near.answer(NEAR, FAR, &question, &mut theirs));
        assert!(far.answer(FAR, FAR, &question, &mut own));
        assert_eq!(theirs, own);
        assert!(!late.answer(NEAR, FAR, &question, &mut own), "it does not know itself");
        late.take(FAR, &TranslationTable::find(&theirs).unwrap());
        assert_eq!((origins(&late, 1), origins(&late, 2)), (vec![FAR], vec![FAR]));
        assert_eq!(hear(&mut late, 20, &ogm), None);
        assert_eq!(late.version_of(FAR), 2);
    }

    #[test]
    fn who_broadcasts_is_known_before_its_table_and_tables_are_bounded() {
        let mut by = Translation::default();
        by.note_heard(at(0), client(1), NEAR);
        by.note_heard(at(0), client(1), FAR);
        assert_eq!(origins(&by, 1), [FAR], "where it was heard last");
        by.purge(at(601), None);
        assert_eq!(origins(&by, 1), []);
        for n in 0..2000_u32 {
            let [_, _, high, low] = n.to_be_bytes();
            by.note_ours(at(0), Mac([2, 2, 0, 0, high, low]));
            by.note_heard(at(0), Mac([2, 3, 0, 0, high, low]), FAR);
        }
        assert_eq!((by.ours.len(), by.heard.len(), by.refused), (110, 1024, 1890));
        assert_eq!(tvlv(&mut by).len(), 16 + 110 * 12);
    }
}
