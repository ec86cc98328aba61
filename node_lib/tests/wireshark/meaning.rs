//! What our parser says about a message, in the words in which the dissector shows it.

use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AnnouncementAck;
use node_lib::messages::control::announcement::Announcement;
use node_lib::messages::control::echo::Echo;
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::position::Position;
use node_lib::messages::control::probe::{AnsweredRoute, NO_ROUTE, Probe, ProbeAnswer};
use node_lib::messages::control::withdrawal::Withdrawal;
use node_lib::messages::data::{Data, Destination, ToDownstream, ToUpstream};
use node_lib::messages::fragment::{Fragment, PartPlace};
use node_lib::messages::way::Way;
use node_lib::messages::{Cost, PacketType, Rhythm};
use node_lib::{NodeId, Order, Seq};

/// A field as it is shown: its name, and the values it has, first to last.
pub(crate) type Field = (&'static str, Vec<String>);

fn one(name: &'static str, value: impl ToString) -> Field {
    (name, vec![value.to_string()])
}

fn hex(name: &'static str, value: u32) -> Field {
    (name, vec![format!("{value:#010x}")])
}

fn flag(name: &'static str, is_set: bool) -> Field {
    one(name, u8::from(is_set))
}

fn order(order: Order) -> [Field; 2] {
    let Order { boot, seq } = order;
    [one("v2x.boot", boot.0), one("v2x.seq", seq.0)]
}

fn way(way: Way<'_>) -> [Field; 2] {
    let mut labels = Vec::new();
    let mut rest = Some(way);
    while let Some((next, after)) = rest.and_then(Way::next) {
        if let node_lib::messages::way::Next::Labelled(label) = next {
            labels.push(format!("{:#06x}", u16::from_be_bytes(label.0)));
        }
        rest = Some(after);
    }
    [one("v2x.relays", way.relays()), ("v2x.label", labels)]
}

/// Every field of the message but those of its prefix. Each message is taken apart without `..`:
/// one that gains a field does not compile here until the dissector shows that too.
pub(crate) fn of(packet: &PacketType<'_>) -> Vec<Field> {
    match packet {
        PacketType::Control(control) => of_control(control),
        PacketType::Data(Data::Upstream(message)) => {
            let ToUpstream {
                destination,
                source,
                hop_limit,
                boot,
                seq,
                priority,
                again,
                payload: _,
            } = *message;
            vec![
                one("v2x.destination", destination),
                one("v2x.source", source),
                one("v2x.hop_limit", hop_limit),
                one("v2x.boot", boot),
                one("v2x.seq", seq.0),
                one("v2x.flags.priority", priority),
                flag("v2x.flags.again", again),
            ]
        }
        PacketType::Data(Data::Downstream(message)) => of_downstream(message),
        PacketType::Fragment(message) => {
            let Fragment { priority, id, place: PartPlace { total, index, count }, part } =
                *message;
            let part: Vec<_> = part.iter().map(|byte| format!("{byte:02x}")).collect();
            vec![
                one("v2x.flags.priority", priority),
                one("v2x.fragment.id", id),
                one("v2x.fragment.total", total),
                one("v2x.fragment.index", index),
                one("v2x.fragment.count", count),
                one("v2x.fragment.part", part.join(":")),
            ]
        }
    }
}

fn of_downstream(message: &ToDownstream<'_>) -> Vec<Field> {
    let ToDownstream { destination, source, boot, seq, priority, payload: _ } = *message;
    let mut fields = vec![
        one("v2x.source", source),
        one("v2x.boot", boot),
        one("v2x.seq", seq.0),
        one("v2x.flags.priority", priority),
        flag("v2x.flags.flood", matches!(destination, Destination::All { .. })),
    ];
    match destination {
        Destination::Node { id, way: rest } => {
            fields.push(one("v2x.destination", id));
            fields.extend(way(rest));
        }
        Destination::All { except, hop_limit, taken_at } => fields.extend([
            one("v2x.destination", except),
            one("v2x.hop_limit", hop_limit),
            one("v2x.taken_at", taken_at.0),
        ]),
    }
    fields
}

fn of_control(control: &Control<'_>) -> Vec<Field> {
    match control {
        Control::Heartbeat(message) => of_heartbeat(message),
        Control::HeartbeatReply(message) => of_reply(message),
        Control::Probe(message) => {
            let Probe { sender, sender_boot, nonce, rsu, asked } = *message;
            vec![
                one("v2x.sender", sender),
                one("v2x.sender_boot", sender_boot.0),
                hex("v2x.nonce", nonce),
                one("v2x.rsu", rsu),
                one("v2x.asked", asked),
            ]
        }
        Control::ProbeAnswer(message) => of_answer(message),
        Control::Withdrawal(message) => {
            let Withdrawal { sender, sender_boot, goodbye, rsus } = *message;
            vec![
                one("v2x.sender", sender),
                one("v2x.sender_boot", sender_boot.0),
                flag("v2x.flags.goodbye", goodbye),
                one("v2x.count", rsus.len()),
                ("v2x.rsu", rsus.iter().map(|rsu| rsu.to_string()).collect()),
            ]
        }
        Control::Echo(message) => {
            let Echo { nonce, target, rsu, hop_limit, verdict, at, path } = *message;
            vec![
                hex("v2x.nonce", nonce),
                one("v2x.target", target),
                one("v2x.rsu", rsu),
                one("v2x.hop_limit", hop_limit),
                one("v2x.verdict", verdict.map_or(0, |verdict| verdict as u8)),
                flag("v2x.flags.answer", verdict.is_some()),
                one("v2x.at", at),
                one("v2x.count", path.len()),
                ("v2x.path", path.iter().map(|id| id.to_string()).collect()),
            ]
        }
        Control::Announcement(message) => of_announcement(message),
        Control::AnnouncementAck(message) => {
            let AnnouncementAck {
                destination,
                rsu,
                epoch,
                seq,
                digest,
                part,
                parts,
                status,
                way: rest,
            } = *message;
            let mut fields = vec![
                one("v2x.destination", destination),
                one("v2x.rsu", rsu),
                one("v2x.epoch", epoch),
                one("v2x.seq", seq.0),
                hex("v2x.digest", digest),
                one("v2x.part", part),
                one("v2x.parts", parts),
                one("v2x.status", status as u8),
            ];
            fields.extend(way(rest));
            fields
        }
    }
}

fn of_heartbeat(message: &Heartbeat) -> Vec<Field> {
    let Heartbeat {
        rsu,
        order: news,
        rhythm: Rhythm { tick_ms, pace },
        obus,
        sender,
        sender_boot,
        hello,
        via,
        cost,
        mtu,
        hop_limit,
        hops,
        children,
        stride,
        position,
    } = *message;
    let mut fields = vec![
        one("v2x.rsu", rsu),
        one("v2x.interval_ms", tick_ms),
        one("v2x.pace", pace),
        one("v2x.obus", obus),
        one("v2x.sender", sender),
        one("v2x.sender_boot", sender_boot.0),
        one("v2x.hello", hello),
        one("v2x.via", via),
        one("v2x.cost", cost.0),
        one("v2x.mtu", mtu),
        one("v2x.hop_limit", hop_limit),
        one("v2x.hops", hops),
        one("v2x.flags.children", children),
        one("v2x.flags.stride", stride),
    ];
    fields.extend(order(news));
    if let Some(Position { at, age_ms }) = position {
        fields.extend([
            one("v2x.latitude_e7", at.latitude_e7()),
            one("v2x.longitude_e7", at.longitude_e7()),
            one("v2x.accuracy_dm", at.accuracy_dm().unwrap_or(u16::MAX)),
            one("v2x.age_ms", age_ms),
        ]);
    }
    fields
}

fn of_reply(message: &HeartbeatReply) -> Vec<Field> {
    let HeartbeatReply {
        rsu,
        origin,
        order: word,
        epoch,
        via,
        digest,
        clients,
        within_ds,
        answers: Seq(answers),
        held_100us,
        mtu,
        at_risk_10ms,
        hops,
        goodbye,
        standby,
        acknowledge,
    } = *message;
    let mut fields = vec![
        one("v2x.rsu", rsu),
        one("v2x.origin", origin),
        one("v2x.epoch", epoch),
        one("v2x.via", via),
        hex("v2x.digest", digest),
        one("v2x.clients", clients),
        one("v2x.within_ds", within_ds),
        one("v2x.answers", answers),
        one("v2x.held_100us", held_100us),
        one("v2x.mtu", mtu),
        one("v2x.at_risk_10ms", at_risk_10ms),
        one("v2x.hops", hops),
        flag("v2x.flags.goodbye", goodbye),
        flag("v2x.flags.standby", standby),
        flag("v2x.flags.acknowledge", acknowledge),
    ];
    fields.extend(order(word));
    fields
}

fn of_answer(message: &ProbeAnswer) -> Vec<Field> {
    let ProbeAnswer { sender, sender_boot, asker, nonce, mtu, rsu, route } = *message;
    // Without a route its fields stand there all the same, and are zero.
    let AnsweredRoute { order: news, rhythm, via, cost, hop_limit, hops, stride } = route
        .unwrap_or(AnsweredRoute {
            order: Order::new(0, 0),
            rhythm: Rhythm::each(0),
            via: NodeId::NONE,
            cost: Cost::ZERO,
            hop_limit: 0,
            hops: NO_ROUTE,
            stride: 0,
        });
    let Rhythm { tick_ms, pace } = rhythm;
    let mut fields = vec![
        one("v2x.sender", sender),
        one("v2x.sender_boot", sender_boot.0),
        one("v2x.asker", asker),
        hex("v2x.nonce", nonce),
        one("v2x.mtu", mtu),
        one("v2x.rsu", rsu),
        one("v2x.interval_ms", tick_ms),
        one("v2x.pace", pace),
        one("v2x.via", via),
        one("v2x.cost", cost.0),
        one("v2x.hop_limit", hop_limit),
        one("v2x.hops", hops),
        one("v2x.flags.stride", stride),
    ];
    fields.extend(order(news));
    fields
}

fn of_announcement(message: &Announcement<'_>) -> Vec<Field> {
    let Announcement {
        rsu,
        origin,
        order: word,
        epoch,
        via,
        digest,
        part,
        parts,
        within_ds,
        mtu,
        at_risk_10ms,
        hops,
        standby,
        clients,
    } = *message;
    let all: Vec<_> = clients.iter().collect();
    let groups: Vec<_> = all.chunk_by(|a, b| a.vlan == b.vlan).collect();
    let mut fields = vec![
        one("v2x.rsu", rsu),
        one("v2x.origin", origin),
        one("v2x.epoch", epoch),
        one("v2x.via", via),
        hex("v2x.digest", digest),
        one("v2x.part", part),
        one("v2x.parts", parts),
        one("v2x.within_ds", within_ds),
        one("v2x.mtu", mtu),
        one("v2x.at_risk_10ms", at_risk_10ms),
        one("v2x.hops", hops),
        flag("v2x.flags.standby", standby),
        ("v2x.group", groups.iter().map(|_| String::new()).collect()),
        ("v2x.group.vlan", groups.iter().map(|group| group[0].vlan.to_string()).collect()),
        ("v2x.group.count", groups.iter().map(|group| group.len().to_string()).collect()),
        ("v2x.group.mac", all.iter().map(|client| client.mac.to_string()).collect()),
    ];
    fields.extend(order(word));
    fields
}
