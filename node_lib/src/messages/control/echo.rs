//! Echo: who is on the way to a node or client, and how far is it? Asked by an operator, answered
//! by whoever the question comes to the end at.
//!
//! | offset | bytes | field     | meaning                                                               |
//! |-------:|------:|-----------|-----------------------------------------------------------------------|
//! |      0 |     1 | type      | `0x2b`                                                                |
//! |      1 |     1 | flags     | bit 3 answer                                                          |
//! |      2 |     2 | length    | 24 + 6 × count                                                        |
//! |      4 |     4 | nonce     | of the question; comes back in the answer                             |
//! |      8 |     6 | target    | id of a node, or address of a client                                  |
//! |     14 |     6 | rsu       | whose way up the question takes                                       |
//! |     20 |     1 | hop_limit | hops the question may still go, at most 32; in an answer what was left |
//! |     21 |     1 | verdict   | 0 in a question; see below                                            |
//! |     22 |     1 | at        | place on the path, counted from 0, of whom this frame is for          |
//! |     23 |     1 | count     | ids that follow, 1 to 33                                              |
//! |     24 |   6 × | path      | who asks, then everybody on the way                                   |
//!
//! The path is what a frame of data meets: each node adds itself and passes the question on to
//! where it would send data. An answer goes back along the path, so no node keeps anything of a
//! question that passes.

use crate::mac::{Mac, NodeId};
use crate::messages::flags::{ANSWER, flag};
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::{Kind, MAX_HOPS, ParseError};

/// Length without the path.
pub const HEADER_LEN: usize = 24;

/// Ids on the longest path: who asks, sixteen hops up, sixteen down.
pub const PATH_MAX: usize = 33;

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 nonce: 4,
        8 target: 6,
        14 rsu: 6,
        20 hop_limit: 1,
        21 verdict: 1,
        22 at: 1,
        23 count: 1,
    }
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u8)]
pub enum Verdict {
    /// The target answers.
    Reached = 1,
    /// The node that the target is a client of.
    Client = 2,
    /// The question may go no further.
    HopLimit = 3,
    /// There is no way on from here.
    NoRoute = 4,
    /// Nobody of that id or address is known here, and nobody else is to be asked.
    Unknown = 5,
}

impl Verdict {
    /// The one with this code.
    pub const fn of(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Reached,
            2 => Self::Client,
            3 => Self::HopLimit,
            4 => Self::NoRoute,
            5 => Self::Unknown,
            _ => return None,
        })
    }
}

/// A question, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Comes back in the answer.
    pub nonce: u32,
    /// Id of a node, or address of a client.
    pub target: Mac,
    /// Whose way up the question takes.
    pub rsu: NodeId,
    /// Hops the question may still go.
    pub hop_limit: u8,
    /// What became of the question; `None` while it is one.
    pub verdict: Option<Verdict>,
    /// Place on the path of whom this is for. In a question it may be the next one, which then adds
    /// itself.
    pub at: u8,
    /// Who asks, and who came after.
    pub path: Path<'a>,
}

/// 1 to [`PATH_MAX`] node ids, none of them [`NodeId::NONE`], where they stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a>(&'a [[u8; NodeId::LEN]]);

impl<'a> Path<'a> {
    /// These ids, if they make a path.
    pub fn new(ids: &'a [[u8; NodeId::LEN]]) -> Result<Self, ParseError> {
        const { assert!(PATH_MAX == 33, "as the error says") };
        let kind = Kind::Echo;
        if ids.is_empty() || ids.len() > PATH_MAX {
            let have = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            return Err(kind.value("count", "1 to 33", have));
        }
        for &id in ids {
            kind.node("path", id)?;
        }
        Ok(Self(ids))
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Never: somebody asks.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// First to last.
    pub fn iter(self) -> impl ExactSizeIterator<Item = NodeId> + use<'a> {
        self.0.iter().map(|&id| NodeId(id))
    }

    /// The one at this place.
    pub fn get(self, at: usize) -> Option<NodeId> {
        self.0.get(at).map(|&id| NodeId(id))
    }
}

impl Echo<'_> {
    pub(crate) const FORMAT: Format = Format::at_least(Kind::Echo, HEADER_LEN, ANSWER);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN + self.path.len() * NodeId::LEN
    }

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.wire().append(out);
        out.extend_from_slice(self.path.0.as_flattened());
    }

    pub(crate) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.reserve(Wire::FIELDS + self.path.len());
        self.wire().push_parts(parts);
        parts.extend(self.path.0.iter().map(|id| id.to_vec()));
    }

    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::Echo.first_byte(),
            flags: [flag(self.verdict.is_some(), ANSWER)],
            length: length(self.wire_len()),
            nonce: self.nonce.to_be_bytes(),
            target: self.target.0,
            rsu: self.rsu.0,
            hop_limit: [self.hop_limit],
            verdict: [self.verdict.map_or(0, |verdict| verdict as u8)],
            at: [self.at],
            // At most 33, see `Path::new`.
            count: [u8::try_from(self.path.len()).unwrap_or(u8::MAX)],
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for Echo<'a> {
    type Error = ParseError;

    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::Echo;
        let (flags, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, path)) = Wire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            nonce,
            target,
            rsu,
            hop_limit: [hop_limit],
            verdict: [verdict],
            at: [at],
            count: [count],
        } = wire;
        let need = HEADER_LEN + usize::from(count) * NodeId::LEN;
        if body.len() != need {
            return Err(ParseError::Length { message: kind.name(), need, have: body.len() });
        }
        if hop_limit > MAX_HOPS {
            return Err(kind.value("hop_limit", "at most 32", hop_limit.into()));
        }
        let is_answer = flags & ANSWER != 0;
        let code = verdict;
        let verdict = Verdict::of(code);
        if is_answer != verdict.is_some() || !is_answer && code != 0 {
            let need = if is_answer { "1 to 5 in an answer" } else { "0 in a question" };
            return Err(kind.value("verdict", need, code.into()));
        }
        let path = Path::new(path.as_chunks().0)?;
        // A question has left who asks; an answer is for somebody before the one who gives it.
        let places =
            if is_answer { 0..count.saturating_sub(1) } else { 1..count.saturating_add(1) };
        if !places.contains(&at) {
            let need = if is_answer { "a place before the last" } else { "1 to count" };
            return Err(kind.value("at", need, at.into()));
        }
        Ok(Self {
            nonce: u32::from_be_bytes(nonce),
            target: Mac(kind.node("target", target)?.0),
            rsu: kind.node("rsu", rsu)?,
            hop_limit,
            verdict,
            at,
            path,
        })
    }
}

conversions!(Echo<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u8) -> Vec<[u8; 6]> {
        (1..=count).map(|last| [2, 0, 0, 0, 0, last]).collect()
    }

    fn question(ids: &[[u8; 6]]) -> Echo<'_> {
        Echo {
            nonce: 7,
            target: Mac([2, 0, 0, 0, 0xc, 1]),
            rsu: NodeId([2, 0, 0, 0, 0, 1]),
            hop_limit: 15,
            verdict: None,
            at: 1,
            path: Path::new(ids).unwrap(),
        }
    }

    #[test]
    fn reads_as_it_was_written() {
        for count in [2, 3, 33] {
            let ids = ids(count);
            for verdict in (0..=6).map(Verdict::of) {
                let echo = Echo { verdict, ..question(&ids) };
                if verdict.is_some() && count == 2 {
                    continue;
                }
                let flat: Vec<u8> = (&echo).into();
                assert_eq!(flat.len(), 24 + 6 * usize::from(count));
                assert_eq!(Echo::try_from(&flat[..]), Ok(echo));
            }
        }
        assert_eq!(Verdict::of(2), Some(Verdict::Client));
    }

    fn error_after(ids: &[[u8; 6]], change: impl Fn(&mut Vec<u8>)) -> String {
        let mut flat: Vec<u8> = (&question(ids)).into();
        change(&mut flat);
        Echo::try_from(&flat[..]).unwrap_err().to_string()
    }

    #[test]
    fn refuses_what_is_neither_question_nor_answer() {
        let ids = ids(2);
        let verdict = |code| error_after(&ids, |flat| flat[21] = code);
        assert_eq!(verdict(1), "Echo: verdict 1 where it is 0 in a question");
        assert_eq!(verdict(9), "Echo: verdict 9 where it is 0 in a question");
        let answer = error_after(&ids, |flat| flat[1] = ANSWER);
        assert_eq!(answer, "Echo: verdict 0 where it is 1 to 5 in an answer");
    }

    #[test]
    fn a_question_is_for_somebody_after_who_asks_and_an_answer_before_who_gives_it() {
        let ids = ids(3);
        let at = |at, verdict| {
            let answer = verdict > 0;
            let mut flat: Vec<u8> = (&question(&ids)).into();
            (flat[1], flat[21], flat[22]) = (if answer { ANSWER } else { 0 }, verdict, at);
            Echo::try_from(&flat[..]).is_ok()
        };
        assert_eq!([0, 1, 2, 3, 4].map(|place| at(place, 0)), [false, true, true, true, false]);
        assert_eq!([0, 1, 2, 3].map(|place| at(place, 3)), [true, true, false, false]);
    }

    #[test]
    fn refuses_nobody_too_many_and_half_an_id() {
        let ids = ids(2);
        assert!(error_after(&ids, |flat| flat[24..30].fill(0)).contains("path is zero"));
        assert!(error_after(&ids, |flat| flat[8..14].fill(0)).contains("target is zero"));
        assert!(error_after(&ids, |flat| flat[14..20].fill(0)).contains("rsu is zero"));
        assert!(error_after(&ids, |flat| flat[20] = 33).contains("hop_limit 33"));
        let need = "Echo: length 36 where the format has 30";
        assert_eq!(error_after(&ids, |flat| flat[23] = 1), need);
        assert!(Path::new(&[]).is_err() && Path::new(&[[2; 6]; 34]).is_err());
        assert!(Path::new(&[[2; 6]; 33]).is_ok_and(|path| path.len() == 33));
    }
}
