//! Events as codes, names and values: what MessagePack and JSON lines write of them.

use std::time::Duration;

use arrayvec::ArrayVec;
use node_lib::control::event::{Attachment, Cause, Event, HandOver, Limit, TooLong};
use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, NodeId};

/// One value of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Nil,
    Uint(u64),
    Mac(Mac),
    Word(&'static str),
}

/// More values than any event has.
pub(crate) type Values = ArrayVec<Value, 16>;

/// An event's code, its name and the names of its values. New values are only ever appended.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) code: u8,
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [&'static str],
}

const fn shape(code: u8, name: &'static str, fields: &'static [&'static str]) -> Shape {
    Shape { code, name, fields }
}

const UPSTREAM_CHANGED: Shape = shape(
    0,
    "upstream_changed",
    &[
        "from_rsu",
        "from_upstream",
        "from_hops",
        "to_rsu",
        "to_upstream",
        "to_hops",
        "cause",
        "silence_ns",
    ],
);
const HAND_OVER: Shape = shape(
    1,
    "hand_over",
    &[
        "from_rsu",
        "from_upstream",
        "from_hops",
        "to_rsu",
        "to_upstream",
        "to_hops",
        "cause",
        "is_settled",
        "gap_ns",
        "lost",
        "at_risk",
        "doubled",
        "sent_twice",
    ],
);
const OBU_ATTACHED: Shape = shape(2, "obu_attached", &["obu", "clients", "epoch"]);
const OBU_DETACHED: Shape = shape(3, "obu_detached", &["obu"]);
const ACKNOWLEDGED: Shape = shape(4, "acknowledged", &["rsu", "epoch", "attempts"]);
const CLIENT_HELD: Shape = shape(5, "client_held", &["vlan", "mac"]);
const OBU_ID_CONFLICT: Shape = shape(6, "obu_id_conflict", &["obu", "mac"]);
const TOO_FAR: Shape = shape(7, "too_far", &["obu", "hops_max"]);
const TOO_LONG: Shape = shape(8, "too_long", &["from", "len", "most", "limit"]);
const ID_CONFLICT: Shape = shape(9, "id_conflict", &["mac"]);
const PACE_CHANGED: Shape = shape(10, "pace_changed", &["every_ns", "busy_percent"]);

const SHAPES: [&Shape; 11] = [
    &UPSTREAM_CHANGED,
    &HAND_OVER,
    &OBU_ATTACHED,
    &OBU_DETACHED,
    &ACKNOWLEDGED,
    &CLIENT_HELD,
    &OBU_ID_CONFLICT,
    &TOO_FAR,
    &TOO_LONG,
    &ID_CONFLICT,
    &PACE_CHANGED,
];

const CAUSES: [Cause; 9] = [
    Cause::First,
    Cause::Dead,
    Cause::Goodbye,
    Cause::Withdrawn,
    Cause::Restarted,
    Cause::Fading,
    Cause::Predicted,
    Cause::Better,
    Cause::LinkDown,
];

const LIMITS: [(Limit, &str); 3] =
    [(Limit::Fragments, "fragments"), (Limit::Radio, "radio"), (Limit::Tap, "tap")];

pub(crate) fn shape_of(code: u8) -> Option<&'static Shape> {
    SHAPES.get(usize::from(code)).copied()
}

pub(crate) fn shape_named(name: &str) -> Option<&'static Shape> {
    SHAPES.into_iter().find(|shape| shape.name == name)
}

/// The word this text is, if events use it.
pub(crate) fn word(text: &str) -> Option<&'static str> {
    let words = CAUSES.iter().map(|cause| cause.as_str());
    words.chain(LIMITS.iter().map(|(_, word)| *word)).find(|word| *word == text)
}

fn id(id: NodeId) -> Value {
    Value::Mac(Mac(id.0))
}

fn number(value: usize) -> Value {
    Value::Uint(value as u64)
}

fn span(span: Duration) -> Value {
    Value::Uint(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

fn place(place: Option<Attachment>) -> [Value; 3] {
    match place {
        Some(Attachment { rsu, upstream, hops }) => {
            [id(rsu), id(upstream), Value::Uint(hops.into())]
        }
        None => [Value::Nil; 3],
    }
}

/// What an event is made of.
pub(crate) fn take_apart(event: &Event) -> (&'static Shape, Values) {
    let mut values = Values::new();
    let mut put = |more: &[Value]| values.extend(more.iter().copied());
    let shape = match event {
        Event::UpstreamChanged { from, to, cause, silence } => {
            put(&place(*from));
            put(&place(*to));
            put(&[Value::Word(cause.as_str()), span(*silence)]);
            &UPSTREAM_CHANGED
        }
        Event::HandOver(done) => {
            let HandOver {
                // Without `..`: a new field must have a place here.
                from,
                to,
                cause,
                is_settled,
                gap,
                lost,
                at_risk,
                doubled,
                sent_twice,
            } = *done;
            put(&place(Some(from)));
            put(&place(to));
            put(&[Value::Word(cause.as_str()), Value::Uint(is_settled.into()), span(gap)]);
            put(&[lost, at_risk, doubled, sent_twice].map(Value::Uint));
            &HAND_OVER
        }
        Event::ObuAttached { obu, clients, epoch } => {
            put(&[id(*obu), number(*clients), Value::Uint((*epoch).into())]);
            &OBU_ATTACHED
        }
        Event::ObuDetached { obu } => {
            put(&[id(*obu)]);
            &OBU_DETACHED
        }
        Event::Acknowledged { rsu, epoch, attempts } => {
            put(&[id(*rsu), Value::Uint((*epoch).into()), Value::Uint((*attempts).into())]);
            &ACKNOWLEDGED
        }
        Event::ClientHeld { client } => {
            put(&[Value::Uint(client.vlan.into()), Value::Mac(client.mac)]);
            &CLIENT_HELD
        }
        Event::ObuIdConflict { obu, mac } => {
            put(&[id(*obu), Value::Mac(*mac)]);
            &OBU_ID_CONFLICT
        }
        Event::TooFar { obu, hops_max } => {
            put(&[id(*obu), number(*hops_max)]);
            &TOO_FAR
        }
        Event::TooLong(TooLong { from, len, most, limit }) => {
            let word = LIMITS.iter().find(|(known, _)| known == limit).map_or("", |(_, word)| word);
            put(&[Value::Mac(*from), number(*len), number(*most), Value::Word(word)]);
            &TOO_LONG
        }
        Event::IdConflict { mac } => {
            put(&[Value::Mac(*mac)]);
            &ID_CONFLICT
        }
        Event::PaceChanged { every, busy_percent } => {
            let busy = busy_percent.map_or(Value::Nil, |percent| Value::Uint(percent.into()));
            put(&[span(*every), busy]);
            &PACE_CHANGED
        }
    };
    (shape, values)
}

/// Values in their order.
struct Fields<'a>(std::slice::Iter<'a, Value>);

impl Fields<'_> {
    fn uint<T: TryFrom<u64>>(&mut self) -> Option<T> {
        match self.0.next()? {
            Value::Uint(value) => T::try_from(*value).ok(),
            _ => None,
        }
    }

    fn uint_or_nil<T: TryFrom<u64>>(&mut self) -> Option<Option<T>> {
        if self.0.as_slice().first() == Some(&Value::Nil) {
            self.0.next()?;
            return Some(None);
        }
        self.uint().map(Some)
    }

    fn mac(&mut self) -> Option<Mac> {
        match self.0.next()? {
            Value::Mac(mac) => Some(*mac),
            _ => None,
        }
    }

    fn id(&mut self) -> Option<NodeId> {
        self.mac().map(NodeId::from)
    }

    fn word(&mut self) -> Option<&'static str> {
        match self.0.next()? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    fn span(&mut self) -> Option<Duration> {
        self.uint().map(Duration::from_nanos)
    }

    fn cause(&mut self) -> Option<Cause> {
        let word = self.word()?;
        CAUSES.into_iter().find(|cause| cause.as_str() == word)
    }

    fn place(&mut self) -> Option<Option<Attachment>> {
        if self.0.as_slice().first() == Some(&Value::Nil) {
            self.0.nth(2)?;
            return Some(None);
        }
        Some(Some(Attachment { rsu: self.id()?, upstream: self.id()?, hops: self.uint()? }))
    }
}

/// The event these make; `None` if they make none.
pub(crate) fn put_together(code: u8, values: &[Value]) -> Option<Event> {
    let shape = shape_of(code)?;
    let mut v = Fields(values.iter());
    Some(match shape.code {
        0 => Event::UpstreamChanged {
            from: v.place()?,
            to: v.place()?,
            cause: v.cause()?,
            silence: v.span()?,
        },
        1 => Event::HandOver(HandOver {
            from: v.place()??,
            to: v.place()?,
            cause: v.cause()?,
            is_settled: v.uint::<u64>()? != 0,
            gap: v.span()?,
            lost: v.uint()?,
            at_risk: v.uint()?,
            doubled: v.uint()?,
            sent_twice: v.uint()?,
        }),
        2 => Event::ObuAttached { obu: v.id()?, clients: v.uint()?, epoch: v.uint()? },
        3 => Event::ObuDetached { obu: v.id()? },
        4 => Event::Acknowledged { rsu: v.id()?, epoch: v.uint()?, attempts: v.uint()? },
        5 => Event::ClientHeld { client: Client { vlan: v.uint()?, mac: v.mac()? } },
        6 => Event::ObuIdConflict { obu: v.id()?, mac: v.mac()? },
        7 => Event::TooFar { obu: v.id()?, hops_max: v.uint()? },
        8 => {
            let (from, len, most) = (v.mac()?, v.uint()?, v.uint()?);
            let word = v.word()?;
            let limit = LIMITS.iter().find(|(_, known)| *known == word)?.0;
            Event::TooLong(TooLong { from, len, most, limit })
        }
        9 => Event::IdConflict { mac: v.mac()? },
        10 => Event::PaceChanged { every: v.span()?, busy_percent: v.uint_or_nil()? },
        _ => return None,
    })
}

/// An event in words: its name, and every value with its name.
pub fn describe(event: &Event) -> String {
    let (shape, values) = take_apart(event);
    let mut text = shape.name.to_owned();
    for (name, value) in shape.fields.iter().zip(&values) {
        text += &match value {
            Value::Nil => continue,
            Value::Uint(value) => format!(" {name}={value}"),
            Value::Mac(mac) => format!(" {name}={mac}"),
            Value::Word(word) => format!(" {name}={word}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stand_at_their_codes_and_name_each_value() {
        for (code, shape) in SHAPES.iter().enumerate() {
            assert_eq!(usize::from(shape.code), code, "{}", shape.name);
        }
        let mac = Mac([2; 6]);
        let event = Event::TooLong(TooLong { from: mac, len: 9000, most: 1500, limit: Limit::Tap });
        let (shape, values) = take_apart(&event);
        assert_eq!(shape.fields.len(), values.len());
        assert_eq!(
            describe(&event),
            "too_long from=02:02:02:02:02:02 len=9000 most=1500 limit=tap"
        );
        assert_eq!(put_together(8, &values), Some(event));
        assert_eq!(put_together(8, &values[..3]), None);
        assert_eq!(put_together(200, &values), None);
    }
}
