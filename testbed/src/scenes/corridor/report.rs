//! A drive in tables, with the simulator's beside it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::Corridor;
use super::daemons::RealDrive;
use super::drive::{Drive, DriveHandOver, HandOverReport};

/// Two gaps that differ by no more than this are the same.
pub const SAME_WITHIN: Duration = Duration::from_millis(20);

/// What is promised even when an upstream dies without a word.
pub const GAP_MAX: Duration = Duration::from_millis(300);

/// A drive with the real programs, and drives of the same trace in the simulator.
#[derive(Debug)]
pub struct Comparison {
    /// The real one.
    pub real: RealDrive,
    /// The simulated ones: the first has the seed of the real one.
    pub simulated: Vec<Drive>,
}

/// One hand-over, and what the simulator says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// With the real programs.
    pub real: DriveHandOver,
    /// The hand-over to the same road-side unit in the simulator, at the same seed.
    pub same_seed: Option<DriveHandOver>,
    /// Gaps of that hand-over at all seeds, the shortest first.
    pub gaps: Vec<Duration>,
}

impl Compared {
    /// By how much the real gap differs from the simulated one at the same seed.
    pub fn difference(&self) -> Option<Duration> {
        self.same_seed.as_ref().map(|same| self.real.gap.abs_diff(same.gap))
    }

    /// Whether the real gap is one of those the simulator has at some seed.
    pub fn is_among_the_simulated(&self) -> bool {
        let (Some(min), Some(max)) = (self.gaps.first(), self.gaps.last()) else { return false };
        self.real.gap + SAME_WITHIN >= *min && self.real.gap <= *max + SAME_WITHIN
    }

    /// Whether as many frames were lost as the link in use loses by itself, give or take three
    /// standard deviations: a lossy link has long runs of lost frames now and then.
    pub fn is_due_to_the_link(&self) -> bool {
        let by_link = self.real.lost_by_link;
        self.real.lost <= by_link + 3 * by_link.isqrt()
    }

    /// Within [`SAME_WITHIN`], or why not.
    pub fn verdict(&self) -> &'static str {
        match self.difference() {
            Some(difference) if difference <= SAME_WITHIN => "same",
            _ if self.is_among_the_simulated() => "within the simulator's range over seeds",
            _ if self.is_due_to_the_link() => "no more lost than the link loses",
            _ if self.gaps.is_empty() => "the simulator has no such hand-over",
            _ => "different",
        }
    }
}

impl Comparison {
    /// All hand-overs of the real drive.
    pub fn hand_overs(&self) -> Vec<Compared> {
        let simulated: Vec<Vec<DriveHandOver>> =
            self.simulated.iter().map(Drive::hand_overs).collect();
        let real = self.real.drive.hand_overs();
        let compare = |(index, hand_over): (usize, &DriveHandOver)| {
            // The n-th time to this road-side unit.
            let is_to = |other: &&DriveHandOver| other.to == hand_over.to;
            let before = real.iter().take(index).filter(is_to).count();
            let like_it =
                |drive: &Vec<DriveHandOver>| drive.iter().filter(is_to).nth(before).cloned();
            let mut gaps: Vec<_> =
                simulated.iter().filter_map(like_it).map(|other| other.gap).collect();
            gaps.sort_unstable();
            let same_seed = simulated.first().and_then(like_it);
            Compared { real: hand_over.clone(), same_seed, gaps }
        };
        real.iter().enumerate().map(compare).collect()
    }

    /// What must hold however busy the machine is: a promise counts in lost frames, and a machine
    /// that makes everybody wait loses none.
    pub fn check(&self, corridor: &Corridor) -> Result<()> {
        let drive = &self.real.drive;
        ensure!(drive.doubled() == 0, "{} frames arrived twice", drive.doubled());
        let hand_overs = drive.hand_overs();
        ensure!(!hand_overs.is_empty(), "no hand-over");
        let moves = self.real.moves(corridor.talking.into());
        for (DriveHandOver { from, to, gap, .. }, moves) in hand_overs.iter().zip(moves) {
            let way = format!("{from} to {to}");
            ensure!(*gap <= GAP_MAX, "{way}: a client was cut off for {gap:?}");
            let known = (moves.clients, usize::from(corridor.clients));
            ensure!(
                known.0 == known.1,
                "{way}: the bridge knew {} of {} clients",
                known.0,
                known.1
            );
        }
        let silent_sent = self.real.silent_sent;
        ensure!(silent_sent == 0, "clients that never speak sent {silent_sent} frames");
        Ok(())
    }

    /// For a person to read.
    pub fn text(&self, corridor: &Corridor) -> String {
        let drive = &self.real.drive;
        let (down, up) = drive.rates();
        let medium = &self.real.medium;
        [
            timeline(drive),
            format!(
                "\n  What the clients saw, and the bridge between the road-side units\n{}",
                self.seen(corridor)
            ),
            format!("\n  What the vehicle's node wrote down\n{}", self.recorded()),
            format!("\n  The same drive in the simulator\n{}", self.beside_the_simulator()),
            format!(
                "\n  {down:.0} frames/s to {} clients and {up:.0} from {}:",
                corridor.clients, corridor.talking
            ),
            format!(
                " {} sent, {} lost, {} came twice.",
                drive.sent(),
                drive.lost(),
                drive.doubled()
            ),
            format!(
                " The others sent {}.\n  On air {} frames arrived, {} tries were repeated, {} \
                 frames were lost.",
                self.real.silent_sent, medium.forwarded, medium.retried, medium.lost
            ),
            format!(
                " The machine made the sender wait for {} at most.\n",
                in_ms(self.real.late_max)
            ),
        ]
        .concat()
    }

    /// In one line: the longest gap, frames lost and doubled around hand-overs, ports learnt.
    pub fn summary(&self, corridor: &Corridor) -> String {
        let hand_overs = self.real.drive.hand_overs();
        let moves = self.real.moves(corridor.talking.into());
        let gap = hand_overs.iter().map(|h| h.gap).max().unwrap_or_default();
        let simulated = self.simulated.first().map(Drive::hand_overs).unwrap_or_default();
        let simulated = simulated.iter().map(|h| h.gap);
        let count = |of: fn(&DriveHandOver) -> u64| hand_overs.iter().map(of).sum::<u64>();
        format!(
            "{} hand-overs, gap {} (simulator {}), {} of {} frames lost (by links {}), {} twice, \
             bridge {} of {}",
            hand_overs.len(),
            in_ms(gap),
            in_ms(simulated.max().unwrap_or_default()),
            count(|h| h.lost),
            count(|h| h.sent),
            count(|h| h.lost_by_link),
            count(|h| h.doubled),
            moves.iter().map(|moves| moves.clients).sum::<usize>(),
            hand_overs.len() * usize::from(corridor.clients),
        )
    }

    fn seen(&self, corridor: &Corridor) -> Table {
        let talking = usize::from(corridor.talking);
        let silent = usize::from(corridor.clients - corridor.talking);
        let mut table = table(&[
            "hand-over",
            "at",
            "cause",
            "longest gap",
            "frames lost",
            "by the link",
            "twice",
            "bridge learnt",
            "of silent ones",
            "the last after",
        ]);
        for (hand_over, moves) in self.real.drive.hand_overs().iter().zip(self.real.moves(talking))
        {
            table.add_row([
                way(hand_over),
                at(hand_over),
                hand_over.cause.clone(),
                in_ms(hand_over.gap),
                format!("{} of {}", hand_over.lost, hand_over.sent),
                hand_over.lost_by_link.to_string(),
                hand_over.doubled.to_string(),
                format!("{} of {}", moves.clients, corridor.clients),
                format!("{} of {silent}", moves.silent),
                in_ms(moves.last),
            ]);
        }
        table
    }

    fn recorded(&self) -> Table {
        let mut table = table(&[
            "hand-over",
            "gap",
            "dropped for want of a way",
            "at risk",
            "sent both ways",
            "came both ways",
        ]);
        for hand_over in self.real.drive.hand_overs() {
            let said =
                |of: fn(&HandOverReport) -> String| or_dash(hand_over.record.as_ref().map(of));
            table.add_row([
                way(&hand_over),
                said(|record| in_ms(record.gap)),
                said(|record| record.lost.to_string()),
                said(|record| record.at_risk.to_string()),
                said(|record| record.sent_twice.to_string()),
                said(|record| record.doubled.to_string()),
            ]);
        }
        table
    }

    fn beside_the_simulator(&self) -> Table {
        let seeds = format!("gap over {} seeds", self.simulated.len());
        let mut table = table(&[
            "hand-over",
            "real: gap",
            "at",
            "lost",
            "simulated: gap",
            "at",
            "lost",
            "cause",
            &seeds,
            "",
        ]);
        for compared in self.hand_overs() {
            let Compared { real, same_seed, gaps } = &compared;
            let same = |of: fn(&DriveHandOver) -> String| or_dash(same_seed.as_ref().map(of));
            let range = match (gaps.first(), gaps.get(gaps.len() / 2), gaps.last()) {
                (Some(min), Some(median), Some(max)) => {
                    let [min, median, max] = [min, median, max].map(|gap| gap.as_millis());
                    format!("{min} … {median} … {max} ms")
                }
                _ => NONE.to_owned(),
            };
            table.add_row([
                way(real),
                in_ms(real.gap),
                at(real),
                real.lost.to_string(),
                same(|same| in_ms(same.gap)),
                same(at),
                same(|same| same.lost.to_string()),
                same(|same| same.cause.clone()),
                range,
                compared.verdict().to_owned(),
            ]);
        }
        table
    }
}

/// What each drive delivered, and why the vehicle changed its road-side unit: daemons first, then
/// the mean of the simulated drives.
pub fn side_by_side(sides: &[(&str, Comparison)]) -> Table {
    let mut table = table(&[
        "",
        "delivered",
        "lost",
        "of that, by links",
        "hand-overs",
        "longest gap",
        "causes",
    ]);
    for (told, comparison) in sides {
        let real = Side::of(std::slice::from_ref(&comparison.real.drive));
        table.add_row(real.row(&format!("daemons, {told}")));
        let simulated = Side::of(&comparison.simulated);
        table.add_row(simulated.row(&format!("{} simulated, {told}", comparison.simulated.len())));
    }
    table
}

/// Sums over drives of one kind.
#[derive(Debug, Default)]
struct Side {
    drives: u64,
    sent: u64,
    lost: u64,
    lost_by_link: u64,
    hand_overs: u64,
    gap_max: Duration,
    causes: BTreeMap<String, u64>,
}

impl Side {
    fn of(drives: &[Drive]) -> Self {
        let mut side = Self::default();
        for drive in drives {
            side.drives += 1;
            side.sent += drive.sent();
            side.lost += drive.lost();
            side.lost_by_link += drive.lost_by_link(drive.departure, drive.arrival);
            for hand_over in drive.hand_overs() {
                side.hand_overs += 1;
                side.gap_max = side.gap_max.max(hand_over.gap);
                *side.causes.entry(hand_over.cause).or_default() += 1;
            }
        }
        side
    }

    fn row(&self, name: &str) -> [String; 7] {
        let each = |sum: u64| sum as f64 / self.drives.max(1) as f64;
        let share = 100.0 * (1.0 - self.lost as f64 / self.sent.max(1) as f64);
        let causes = self.causes.iter().map(|(cause, times)| format!("{cause} {times}"));
        [
            name.to_owned(),
            format!("{share:.2} %"),
            format!("{:.0}", each(self.lost)),
            format!("{:.0}", each(self.lost_by_link)),
            format!("{:.1}", each(self.hand_overs)),
            in_ms(self.gap_max),
            causes.collect::<Vec<_>>().join(", "),
        ]
    }
}

/// Who carries the vehicle's frames as time goes by, and where frames are lost.
fn timeline(drive: &Drive) -> String {
    const COLUMNS: u32 = 96;
    const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let span = drive.arrival.saturating_sub(drive.departure);
    let edge = |column: u32| drive.departure + span * column / COLUMNS;
    let (mut users, mut losses) = (String::new(), String::new());
    let mut shown = None;
    let mut name = "".chars();
    for column in 0..COLUMNS {
        let (start, end) = (edge(column), edge(column + 1));
        let user = drive.in_use(end);
        if user != shown {
            shown = user;
            name = user.unwrap_or("none").chars();
            users.push('┃');
        } else {
            users.push(name.next().unwrap_or('━'));
        }
        let (lost, sent) = (drive.lost_between(start, end), drive.sent_between(start, end));
        // Rounded up: one lost frame is to be seen.
        let level = (lost * 8).div_ceil(sent.max(1));
        losses.push(
            usize::try_from(level).ok().and_then(|level| LEVELS.get(level)).copied().unwrap_or('█'),
        );
    }
    format!("     {users} {:.0} s\n     {losses} lost\n", span.as_secs_f64())
}

const NONE: &str = "–";

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

fn way(hand_over: &DriveHandOver) -> String {
    format!("{} → {}", hand_over.from, hand_over.to)
}

fn at(hand_over: &DriveHandOver) -> String {
    format!("{:.2} s", hand_over.at.as_secs_f64())
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn in_ms(span: Duration) -> String {
    format!("{} ms", span.as_millis())
}

#[cfg(test)]
mod tests {
    use super::super::drive::Change;
    use super::*;
    use crate::probe::StreamLog;

    #[test]
    fn a_side_sums_its_drives() {
        let ms = Duration::from_millis;
        let log = |lost: usize| StreamLog {
            every: ms(10),
            sent: (0..100).map(|n| ms(10 * n)).collect(),
            arrivals: (0..100).map(|n| u32::from(n >= lost)).collect(),
        };
        let change = Change {
            at: ms(500),
            from: Some("rsu1".to_owned()),
            to: Some("rsu2".to_owned()),
            cause: "predicted".to_owned(),
        };
        let drive = |lost| Drive {
            arrival: ms(1000),
            changes: vec![change.clone()],
            down: vec![log(lost)],
            ..Drive::default()
        };
        let row = Side::of(&[drive(2), drive(4)]).row("both");
        assert_eq!(row[..3], ["both", "97.00 %", "3"]);
        assert_eq!(row[4..], ["1.0", "40 ms", "predicted 2"]);
    }

    #[test]
    fn a_gap_is_the_same_or_explained_or_different() {
        let ms = Duration::from_millis;
        let hand_over = |gap, lost, lost_by_link| DriveHandOver {
            left: ms(0),
            at: ms(0),
            from: "a".to_owned(),
            to: "b".to_owned(),
            cause: "dead".to_owned(),
            record: None,
            gap: ms(gap),
            sent: 1000,
            lost,
            lost_by_link,
            doubled: 0,
        };
        let verdict = |gap, lost, gaps: &[u64]| {
            let real = hand_over(gap, lost, 100);
            let same_seed = gaps.first().map(|gap| hand_over(*gap, 100, 100));
            let mut gaps: Vec<_> = gaps.iter().map(|gap| ms(*gap)).collect();
            gaps.sort_unstable();
            Compared { real, same_seed, gaps }.verdict()
        };
        assert_eq!(verdict(50, 500, &[70, 0]), "same");
        assert_eq!(verdict(50, 500, &[90, 0]), "within the simulator's range over seeds");
        assert_eq!(verdict(50, 130, &[90]), "no more lost than the link loses");
        assert_eq!(verdict(50, 131, &[90]), "different");
        assert_eq!(verdict(50, 131, &[]), "the simulator has no such hand-over");
    }
}
