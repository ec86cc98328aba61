//! The radio channel, watched with stations so simple that every outcome is plain.

use node_lib::Timestamp;
use sim::radio::{
    Access, Csma, DataRate, Fading, Occupancy, PathLoss, RadioModel, Shadowing, fading::Shape,
};
use sim::{Fault, FrameKind, LinkStep, LinkTrace, Location, NodeIndex, Track};

use crate::cell::{Cell, PROBE, PROBE_OF_1, at, client_mac, ms, us};

/// Bytes on the radio of a 60-byte frame: header of Ethernet and of data on top.
const ON_AIR: usize = 14 + 22 + 60;

#[test]
fn a_lone_frame_takes_its_airtime_and_its_receiver_acknowledges_it() {
    let mut cell = Cell::new(1, csma(300.0, 0.0), &[0.0, 50.0]);
    let flow = cell.unicast(0, 1, at(10), ms(1), 1);
    cell.world.run_until(at(1000)).unwrap();
    // 82 bytes of payload and 38 of MAC: 982 bits, 21 symbols, 208 µs.
    assert_eq!(DataRate::Mbps6.airtime_of_ethernet(ON_AIR), us(208));
    let arrived = cell.log(flow).received_at(cell.clients[1], 0);
    assert_eq!(arrived, Some(at(10) + us(208)), "an idle channel is used at once");
    let airtime = cell.world.airtime();
    // The frame, SIFS of 32 µs and the acknowledgement of 64 µs; nothing is on the air in the
    // pause.
    let share = Occupancy { control: 0.0, data: 304e-6, ack: 96e-6, busy: 272e-6 };
    assert_eq!(airtime.seconds[0].receivers, 2);
    assert_alike(airtime.worst(), share);
    assert_alike(airtime.mean(), share);
}

/// 1 hears 0 and 2, which do not hear each other: the acknowledgement reaches 2, the frame does
/// not. So does it where frames take no air, in the figures.
#[test]
fn an_acknowledgement_occupies_the_channel_of_who_hears_its_sender() {
    for access in [Access::Csma(Csma::DEFAULT), Access::INSTANT] {
        let channel = RadioModel { access, ..RadioModel::disk(100.0, 0.0) };
        let mut cell = Cell::new(13, channel, &[0.0, 80.0, 160.0]);
        cell.unicast(0, 1, at(10), ms(1), 1);
        cell.world.run_until(at(1000)).unwrap();
        let airtime = cell.world.airtime();
        let all = |part: f64| part / 3.0;
        let mean = Occupancy {
            control: 0.0,
            data: all(304e-6 + 304e-6 + 96e-6),
            ack: all(3.0 * 96e-6),
            busy: all(272e-6 + 272e-6 + 64e-6),
        };
        assert_alike(airtime.mean(), mean);
    }
}

/// What is spent on a control frame is control, its acknowledgement too; a broadcast draws none.
#[test]
fn the_acknowledgement_of_a_control_frame_is_control() {
    let mut cell = Cell::new(14, csma(300.0, 0.0), &[0.0, 50.0]);
    cell.world.inject_tap(at(10), NodeIndex(0), PROBE);
    cell.world.run_until(at(1000)).unwrap();
    let broadcast = cell.world.airtime().worst();
    assert!(broadcast.control > 0.0 && broadcast.ack == 0.0, "{broadcast:?}");
    let mut cell = Cell::new(14, csma(300.0, 0.0), &[0.0, 50.0]);
    cell.world.inject_tap(at(10), NodeIndex(0), PROBE_OF_1);
    cell.world.run_until(at(1000)).unwrap();
    let unicast = cell.world.airtime().worst();
    assert_alike(
        unicast,
        Occupancy {
            control: broadcast.control + 96e-6,
            data: 0.0,
            ack: 96e-6,
            busy: broadcast.busy + 64e-6,
        },
    );
}

/// Two that hear each other send more than fits: the channel is full, and each gets half.
#[test]
fn two_saturating_senders_share_the_channel() {
    let channel = |retries| {
        let csma = Csma { retries, queue_len_max: 8, ..Csma::DEFAULT };
        RadioModel { access: Access::Csma(csma), ..RadioModel::disk(300.0, 0.0) }
    };
    let mut cell = Cell::new(2, channel(0), &[0.0, 50.0, 100.0]);
    let flows = [0, 1].map(|n| cell.broadcast(n, at(0), us(100), 40_000));
    cell.world.run_until(at(4000)).unwrap();
    let received = flows.map(|flow| cell.log(flow).received(cell.clients[2]));
    let busy = cell.world.airtime().mean().busy;
    // 208 µs of frame after AIFS of 110 µs and, two at it, about a third of 15 slots: two thirds.
    assert!((0.50..0.70).contains(&busy), "{busy}");
    let share = received[0] as f64 / (received[0] + received[1]) as f64;
    assert!((0.47..0.53).contains(&share), "{received:?}");
    // Of 4 s, one frame each 340 to 380 µs, but for collisions of those who drew alike.
    assert!((8_500..12_500).contains(&(received[0] + received[1])), "{received:?}");
    let dropped: u64 = [0, 1].map(|n| cell.world.queue_drops(NodeIndex(n))).iter().sum();
    assert!(dropped > 60_000, "{dropped}");
    let first = cell.log(flows[0]);
    let lost = (0..40_000).find_map(|number| first.lost_in_queue(number));
    assert_eq!(lost.map(|(_, node)| node), Some(NodeIndex(0)));
}

/// Thirty who all hear each other, together a third of what the channel carries: acknowledged
/// frames all arrive, and soon; of broadcasts a few meet another that began in the same slot.
#[test]
fn a_cell_that_is_not_full_loses_next_to_nothing() {
    let places: Vec<f64> = (0..30).map(|n| f64::from(n) * 5.0).collect();
    let mut cell = Cell::new(12, csma(300.0, 0.0), &places);
    let start = |n: usize| Timestamp::from_micros(n as u64 * 1009);
    let flows: Vec<_> = (0..30)
        .map(|n| cell.unicast(n, (n + 7) % 30, start(n), us(35_003 + 97 * n as u64), 100))
        .collect();
    cell.world.run_until(at(5000)).unwrap();
    let mut waits = Vec::new();
    for (n, &flow) in flows.iter().enumerate() {
        let log = cell.log(flow);
        let client = cell.clients[(n + 7) % 30];
        assert_eq!(log.received(client), 100, "{n}");
        let wait = |(number, sent)| log.received_at(client, number).unwrap() - sent;
        waits.extend((0..).zip(log.sent().iter().copied()).map(wait));
    }
    let busy = cell.world.airtime().seconds[1].mean.busy;
    assert!((0.18..0.32).contains(&busy), "{busy}");
    waits.sort_unstable();
    assert!(waits[waits.len() * 9 / 10] < ms(2), "{:?}", waits[waits.len() * 9 / 10]);
    assert!(waits[waits.len() - 1] < ms(20), "{:?}", waits[waits.len() - 1]);
}

/// 0 and 2 hear 1 and not each other: what both send at once is lost at 1. Brought within earshot,
/// they take turns.
#[test]
fn hidden_terminals_collide() {
    let lost = |places: &[f64]| {
        let channel = RadioModel {
            access: Access::Csma(Csma { retries: 0, ..Csma::DEFAULT }),
            ..RadioModel::disk(300.0, 0.0)
        };
        let mut cell = Cell::new(3, channel, places);
        let flows = [0, 2].map(|n| cell.broadcast(n, at(0), us(997 + n as u64), 3000));
        cell.world.run_until(at(4000)).unwrap();
        let received: usize = flows.iter().map(|&f| cell.log(f).received(cell.clients[1])).sum();
        1.0 - received as f64 / 6000.0
    };
    let [hidden, heard] = [lost(&[0.0, 290.0, 580.0]), lost(&[0.0, 140.0, 280.0])];
    // Each of 208 µs, every millisecond: 2 · 208 / 1000 of the frames meet another.
    assert!((0.3..0.5).contains(&hidden), "{hidden}");
    assert!(heard < 0.02, "{heard}");
}

/// The same, but 0 stands much nearer than 2: its frames drown those of 2.
#[test]
fn the_stronger_of_two_frames_is_captured() {
    let csma = Csma { retries: 0, ..Csma::DEFAULT };
    let channel = RadioModel { access: Access::Csma(csma), ..RadioModel::disk(300.0, 0.0) };
    let mut cell = Cell::new(3, channel, &[230.0, 290.0, 580.0]);
    let flows = [0, 2].map(|n| cell.broadcast(n, at(0), us(997 + n as u64), 3000));
    cell.world.run_until(at(4000)).unwrap();
    let received = flows.map(|flow| cell.log(flow).received(cell.clients[1]));
    assert_eq!(received[0], 3000);
    assert!(received[1] < 2200, "{received:?}");
}

/// 0 and 2 are 360 m apart: −87 dBm, of which each can decode what the other sends. So they take
/// turns in sending to the RSU between them, though they would not notice mere energy so weak.
#[test]
fn who_can_decode_a_frame_lets_it_end() {
    let mut channel = RadioModel::with_path_loss(PathLoss::DUAL_SLOPE);
    channel.access = Access::Csma(Csma { retries: 0, ..Csma::DEFAULT });
    let between = channel.mean_dbm(360.0);
    assert!((-90.0..-85.0).contains(&between), "{between}");
    let mut cell = Cell::new(15, channel, &[0.0, 180.0, 360.0]);
    let flows = [0, 2].map(|n| cell.broadcast(n, at(0), us(997 + n as u64), 2000));
    cell.world.run_until(at(3000)).unwrap();
    let received: usize = flows.iter().map(|&f| cell.log(f).received(cell.clients[1])).sum();
    println!("360 m apart: {received} of 4000");
    assert!(received > 3960, "{received}");
}

/// 1 does not hear that 0 begins, for it sends itself: afterwards what is left of the frame is
/// energy without a preamble. Near 0 that is enough to wait for its end; farther away 1 goes on at
/// once.
#[test]
fn energy_without_a_preamble_counts_from_a_higher_threshold_on() {
    let second_arrives = |distance_m: f64| {
        let mut channel = RadioModel::with_path_loss(PathLoss::DUAL_SLOPE);
        channel.access = Access::Csma(Csma::DEFAULT);
        let places = [0.0, distance_m, distance_m + 10.0];
        let mut cell = Cell::new(16, channel, &places);
        // 0 begins while 1 is on air, as it would if it did not hear 1.
        cell.world.apply(Fault::CutOneWay(NodeIndex(1), NodeIndex(0)));
        let flow = cell.broadcast(1, at(10), us(1), 2);
        cell.broadcast(0, at(10) + us(100), us(1), 1);
        cell.world.run_until(at(100)).unwrap();
        cell.log(flow).received_at(cell.clients[2], 1).unwrap()
    };
    // −59 and −72 dBm; frames last 208 µs.
    assert_eq!(second_arrives(50.0).since(second_arrives(150.0)), us(100));
}

/// The default of dot11ShortRetryLimit, 7, counts the first attempt too.
#[test]
fn a_frame_nobody_acknowledges_is_sent_seven_times() {
    let mut cell = Cell::new(17, csma(300.0, 0.0), &[0.0, 50.0]);
    cell.world.apply(Fault::CutOneWay(NodeIndex(0), NodeIndex(1)));
    let flow = cell.unicast(0, 1, at(10), ms(1), 1);
    cell.world.run_until(at(1000)).unwrap();
    assert!(cell.log(flow).lost_on_air(0).is_some());
    let data = cell.world.airtime().worst().data;
    assert!((data - 7.0 * 208e-6).abs() < 1e-9, "{data}");
}

/// A node is told once of each frame given up, when its radio has tried for the last time.
#[test]
fn a_node_hears_of_what_its_radio_gave_up_where_radios_tell() {
    // From a frame of 0 to 1: how many were given up, and how many arrived.
    let run = |channel: RadioModel, reports, faults: &[Fault], is_broadcast| {
        let mut cell = Cell::new(19, channel, &[0.0, 50.0]);
        cell.world.report_unacknowledged(reports);
        faults.iter().for_each(|fault| cell.world.apply(*fault));
        let flow = if is_broadcast {
            cell.broadcast(0, at(10), ms(100), 3)
        } else {
            cell.unicast(0, 1, at(10), ms(100), 3)
        };
        cell.world.run_until(at(1000)).unwrap();
        let given_up = cell.world.stats().of(FrameKind::PROBE).frames;
        (given_up, cell.log(flow).received(cell.clients[1]))
    };
    let (there, back) = (NodeIndex(0), NodeIndex(1));
    let (lost, unheard) = ([Fault::CutOneWay(there, back)], [Fault::CutOneWay(back, there)]);
    let silent = Csma { retries: 0, ..Csma::DEFAULT };
    let silent = RadioModel { access: Access::Csma(silent), ..RadioModel::disk(300.0, 0.0) };
    let instant = RadioModel { access: Access::INSTANT, ..RadioModel::disk(300.0, 0.0) };
    for (name, found, asked) in [
        ("arrives", run(csma(300.0, 0.0), true, &[], false), (0, 3)),
        ("lost", run(csma(300.0, 0.0), true, &lost, false), (3, 0)),
        ("only the acknowledgement is lost", run(csma(300.0, 0.0), true, &unheard, false), (3, 3)),
        ("to all", run(csma(300.0, 0.0), true, &lost, true), (0, 0)),
        ("the radio does not tell", run(csma(300.0, 0.0), false, &lost, false), (0, 0)),
        ("nothing is acknowledged", run(silent, true, &lost, false), (0, 0)),
        ("takes no air, arrives", run(instant.clone(), true, &[], false), (0, 3)),
        ("takes no air, lost", run(instant, true, &lost, false), (3, 0)),
    ] {
        assert_eq!(found, asked, "{name}");
    }
}

#[test]
fn retries_carry_unicast_over_a_link_that_loses_three_frames_in_ten() {
    let run = |retries| {
        let csma = Csma { retries, ..Csma::DEFAULT };
        let channel = RadioModel { access: Access::Csma(csma), ..RadioModel::disk(300.0, 0.3) };
        let mut cell = Cell::new(4, channel, &[0.0, 50.0]);
        let flow = cell.unicast(0, 1, at(0), ms(10), 2000);
        cell.world.run_until(at(21_000)).unwrap();
        let log = cell.log(flow).clone();
        let lost = (0..2000).filter(|n| log.lost_on_air(*n).is_some()).count();
        assert_eq!(lost + log.received(cell.clients[1]), 2000, "lost on air or arrived");
        let loss = (0..2000).find_map(|n| log.lost_on_air(n));
        (lost, loss.map(|loss| (loss.from, loss.to)))
    };
    let (lost, where_to) = run(0);
    assert!((520..680).contains(&lost), "{lost}");
    assert_eq!(where_to, Some((NodeIndex(0), Some(NodeIndex(1)))));
    // All eight lost: 0.3⁸, one frame in 15,000. A frame that arrived twice would be a violation.
    let (lost, _) = run(7);
    assert!(lost <= 2, "{lost}");
}

#[test]
fn control_goes_before_data_that_waits() {
    let mut cell = Cell::new(5, csma(300.0, 0.0), &[0.0, 50.0]);
    cell.world.keep_trace();
    cell.broadcast(0, at(10), us(1), 20);
    cell.world.inject_tap(at(11), NodeIndex(0), PROBE);
    cell.world.run_until(at(100)).unwrap();
    let text = cell.world.trace_text();
    let heard: Vec<&str> = text.lines().filter(|line| line.contains("n1 hears")).collect();
    let probe = heard.iter().position(|line| line.contains("hears probe")).unwrap();
    // A millisecond is enough for three frames of data; one may be on air as the probe comes.
    assert!(probe <= 4, "{heard:#?}");
    assert_eq!(heard.len(), 21);
}

#[test]
fn what_a_client_calls_voice_goes_before_its_other_data() {
    // IPv4, of 100 bytes in all; the class is its DSCP: EF, or none.
    let place_of = |dscp: u8| {
        let mut cell = Cell::new(5, csma(300.0, 0.0), &[0.0, 50.0]);
        cell.world.keep_trace();
        cell.broadcast(0, at(10), us(1), 20);
        let header = [&[0xff; 6][..], &client_mac(0).0, &[8, 0, 0x45, dscp << 2]].concat();
        cell.world.inject_tap(at(11), NodeIndex(0), &[&header[..], &[0; 84]].concat());
        cell.world.run_until(at(100)).unwrap();
        let text = cell.world.trace_text();
        let (_, crc) = text.split_once(", 140 B ").unwrap();
        let crc = crc.split_whitespace().next().unwrap();
        let mut heard = text.lines().filter(|line| line.contains("n1 hears"));
        heard.position(|line| line.contains(crc)).unwrap()
    };
    assert!(place_of(46) <= 4, "{}", place_of(46));
    assert_eq!(place_of(0), 20);
}

#[test]
fn what_is_cut_or_off_is_heard_by_nobody_and_lost_on_that_link() {
    let mut cell = Cell::new(6, csma(300.0, 0.0), &[0.0, 50.0, 80.0]);
    cell.world.apply(Fault::CutOneWay(NodeIndex(0), NodeIndex(1)));
    let cut = cell.unicast(0, 1, at(0), ms(5), 10);
    let other = cell.unicast(0, 2, at(0), ms(5), 10);
    cell.world.run_until(at(500)).unwrap();
    assert_eq!(cell.log(cut).received(cell.clients[1]), 0);
    assert_eq!(cell.log(cut).lost_on_air(9).map(|loss| loss.to), Some(Some(NodeIndex(1))));
    assert_eq!(cell.log(other).received(cell.clients[2]), 10);
    cell.world.apply(Fault::RadioDown(NodeIndex(2)));
    let down = cell.unicast(0, 2, at(500), ms(5), 10);
    cell.world.run_until(at(1000)).unwrap();
    assert_eq!(cell.log(down).received(cell.clients[2]), 0);
    assert!((0..10).all(|n| cell.log(down).lost_on_air(n).is_some()));
}

#[test]
fn strength_is_reported_before_the_frame() {
    let mut cell = Cell::new(7, csma(300.0, 0.0), &[0.0, 100.0]);
    cell.world.keep_taps();
    cell.broadcast(0, at(10), ms(10), 1);
    cell.world.run_until(at(100)).unwrap();
    // 23 dBm and 87.9 dB: −65 dBm, as the station writes it into what it hands over.
    let frame = &cell.world.taps()[0].frame;
    assert_eq!(frame[59] as i8, -65);
}

/// Delivery as computed, and as it comes out, at distances where it is neither 0 nor 1.
#[test]
fn delivery_comes_out_as_computed() {
    for access in [Access::INSTANT, Access::Csma(Csma { retries: 0, ..Csma::DEFAULT })] {
        let channel = RadioModel {
            fading: Fading::Nakagami(Shape::suburb()),
            access,
            ..RadioModel::with_path_loss(PathLoss::DUAL_SLOPE)
        };
        let mut cell = Cell::new(8, channel.clone(), &[0.0, 90.0, 160.0, 240.0, 330.0, 420.0]);
        let flow = cell.broadcast(0, at(0), ms(2), 4000);
        cell.world.run_until(at(9000)).unwrap();
        for (n, distance) in [(1, 90.0), (2, 160.0), (3, 240.0), (4, 330.0), (5, 420.0)] {
            let found = cell.log(flow).received(cell.clients[n]) as f64 / 4000.0;
            let asked = cell.world.delivery(NodeIndex(0), NodeIndex(n));
            assert!((asked - channel.delivery(distance)).abs() < 1e-6);
            assert!((found - asked).abs() < 0.035, "{distance} m: {found} for {asked}");
        }
    }
}

/// The shadow of a link as `delivery` shows it: it changes with distance driven, and stays while
/// nobody moves.
#[test]
fn a_shadow_belongs_to_a_place() {
    let channel = RadioModel {
        shadowing: Some(Shadowing { asymmetric_db: 4.0, ..Shadowing::SUBURB }),
        ..RadioModel::suburb()
    };
    let mut cell = Cell::new(9, channel, &[0.0, 150.0, -150.0]);
    let [a, b, c] = [0, 1, 2].map(NodeIndex);
    let ends = [Location::new(-150.0, 0.0), Location::new(-150.0, 400.0)];
    cell.world.follow(c, Track::straight(at(1000), ends[0], ends[1], 10.0).unwrap());
    let mut parked = Vec::new();
    let mut driven = Vec::new();
    for second in 2..30 {
        cell.world.run_until(at(second * 1000)).unwrap();
        parked.push(cell.world.delivery(a, b));
        driven.push(cell.world.delivery(a, c));
        assert_ne!(cell.world.delivery(a, c), cell.world.delivery(c, a), "asymmetric");
    }
    assert!(parked.iter().all(|delivery| *delivery == parked[0]));
    assert!(driven.windows(2).all(|pair| pair[0] != pair[1]), "{driven:?}");
}

#[test]
fn a_trace_of_links_is_followed() {
    let mut cell = Cell::linkless(10, 2);
    let [a, b] = [0, 1].map(NodeIndex);
    let step =
        |millis, loss, delay| LinkStep { time: at(millis), loss, delay: ms(delay), strength: None };
    let mut trace = LinkTrace::new();
    trace.push(a, b, step(100, 0.0, 3)).unwrap();
    trace.push(a, b, step(200, 1.0, 3)).unwrap();
    trace.push(a, b, step(300, 0.5, 7)).unwrap();
    cell.world.replay(&trace);
    cell.world.at(at(150), Fault::CutOneWay(a, b));
    cell.world.at(at(160), Fault::HealOneWay(a, b));
    let flow = cell.unicast(0, 1, at(0), ms(1), 2300);
    cell.world.run_until(at(3000)).unwrap();
    let log = cell.log(flow);
    let at_b = |number| log.received_at(cell.clients[1], number);
    let arrived = |from: u32, to: u32| (from..to).filter(|n| at_b(*n).is_some()).count();
    assert_eq!(arrived(0, 100), 0, "no link yet");
    assert_eq!(at_b(120), Some(at(123)));
    assert_eq!(arrived(101, 147), 46);
    assert_eq!(arrived(150, 160), 0, "cut");
    assert_eq!(arrived(201, 299), 0);
    assert!((900..1100).contains(&arrived(300, 2300)), "{}", arrived(300, 2300));
    let last = (300..2300).rfind(|n| at_b(*n).is_some()).unwrap();
    assert_eq!(at_b(last), Some(at(u64::from(last) + 7)));
    assert!((300..2300).all(|n| at_b(n).is_some() != log.lost_on_air(n).is_some()));
}

/// A frame under way is lost with the radio that carried it, and what that one had planned does not
/// hasten frames of the next.
#[test]
fn a_new_radio_knows_nothing_of_what_the_old_one_planned() {
    for access in [Access::INSTANT, Access::Csma(Csma::DEFAULT)] {
        let channel = RadioModel { access, ..RadioModel::disk(300.0, 0.0) };
        let mut cell = Cell::new(18, channel.clone(), &[0.0, 50.0]);
        let flow = cell.broadcast(0, at(10), us(150), 2);
        cell.world.run_until(at(10) + us(100)).unwrap();
        cell.world.set_radio(channel);
        cell.world.run_until(at(100)).unwrap();
        let log = cell.log(flow);
        assert_eq!(log.received_at(cell.clients[1], 0), None);
        let took = log.received_at(cell.clients[1], 1).unwrap().since(at(10) + us(150));
        assert!(took >= us(208), "{took:?}");
    }
}

/// Whatever it counted down for when it went off is no reason to be silent when it is back.
#[test]
fn a_radio_that_was_about_to_send_when_it_went_off_sends_when_it_is_back() {
    for late in 0..20 {
        let mut cell = Cell::new(19, csma(300.0, 0.0), &[0.0, 50.0]);
        cell.broadcast(0, at(10), us(50), 100);
        cell.world.run_until(at(11) + us(17 * late)).unwrap();
        cell.world.apply(Fault::RadioDown(NodeIndex(0)));
        cell.world.run_until(at(50)).unwrap();
        cell.world.apply(Fault::RadioUp(NodeIndex(0)));
        let again = cell.broadcast(0, at(60), ms(5), 10);
        cell.world.run_until(at(200)).unwrap();
        assert_eq!(cell.log(again).received(cell.clients[1]), 10, "off {} µs later", 17 * late);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| {
        let places: Vec<f64> = (0..12).map(|n| f64::from(n) * 40.0).collect();
        let mut cell = Cell::new(seed, RadioModel::suburb_shadowed(), &places);
        for n in 0..12 {
            cell.broadcast(n, at(n as u64), us(2300 + n as u64), 400);
            let start = Location::new(n as f64 * 40.0, 10.0);
            let end = Location::new(200.0, 300.0 + n as f64);
            let track = Track::straight(at(500), start, end, 14.0).unwrap();
            cell.world.follow(NodeIndex(n), track);
        }
        cell.world.run_until(at(2000)).unwrap();
        (cell.world.trace_hash(), cell.world.airtime().clone())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

/// At one density, what happens per node and second does not grow with the number of nodes.
#[test]
fn work_per_node_stays_the_same_from_50_to_500() {
    let work = |nodes: usize| {
        let places: Vec<f64> = (0..nodes).map(|n| n as f64 * 20.0).collect();
        let channel =
            RadioModel { access: Access::Csma(Csma::DEFAULT), ..RadioModel::disk(200.0, 0.0) };
        let mut cell = Cell::new(11, channel, &places);
        for n in 0..nodes {
            cell.broadcast(n, Timestamp::from_micros(n as u64 * 7919 % 100_000), ms(100), 20);
        }
        cell.world.run_until(at(2500)).unwrap();
        cell.world.event_count() as f64 / nodes as f64
    };
    let [few, many] = [work(50), work(500)];
    assert!((0.8..1.25).contains(&(many / few)), "{few:.1} and {many:.1}");
}

// Helpers.

/// To a nanosecond a second.
fn assert_alike(found: Occupancy, asked: Occupancy) {
    let parts = |o: Occupancy| [o.control, o.data, o.ack, o.busy];
    let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-9;
    let alike = parts(found).into_iter().zip(parts(asked)).all(near);
    assert!(alike, "{found:?} for {asked:?}");
}

fn csma(range_m: f64, loss: f64) -> RadioModel {
    RadioModel { access: Access::Csma(Csma::DEFAULT), ..RadioModel::disk(range_m, loss) }
}
