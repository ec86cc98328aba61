//! The arithmetic of boot counts: from the time of day and the last start to this one.
//!
//! A boot count is a number of 250 ms since 2024. A start without a state file takes the number of
//! the next unit and waits until it begins. It is higher than that of any start before, however
//! soon after that it comes, as long as the clock is not set back. A start with a state file takes
//! at least one more than what the file says, and does not wait.

use std::time::Duration;

use crate::order::Boot;

/// One unit of the clock's boot count: short enough to wait for at every start, long enough for 32
/// bits to last from 2024 to 2058.
pub const UNIT: Duration = Duration::from_millis(250);

/// 2024-01-01T00:00:00Z, since 1970.
pub const EPOCH: Duration = Duration::from_secs(1_704_067_200);

/// A boot count, and how long a start waits until it may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The count.
    pub boot: Boot,
    /// Until then no frame may be sent: less than or equal to [`UNIT`].
    pub wait: Duration,
}

/// The boot count of a start that has only the time of day, given since 1970: that of the next
/// unit, and the time until it begins. Times before [`EPOCH`] count as that; after the last unit,
/// in 2058, the last one is given again and again.
pub fn by_clock(time_of_day: Duration) -> Counted {
    let unit = next_unit(time_of_day).unwrap_or(u32::MAX);
    let wait = UNIT.saturating_mul(unit).saturating_sub(time_of_day.saturating_sub(EPOCH));
    Counted { boot: Boot(unit), wait }
}

/// The number of the unit after this time of day; `None` if it is after the last one.
fn next_unit(time_of_day: Duration) -> Option<u32> {
    let since = time_of_day.saturating_sub(EPOCH);
    u32::try_from(since.as_millis() / UNIT.as_millis() + 1).ok()
}

/// The boot count of a start that knows the last one: never lower than what the clock says, so that
/// the file may be lost. A clock that is ahead of the last unit is wrong by decades and counts as
/// [`EPOCH`]: believed, it would use up all numbers at once, and no later start would have one.
/// `None` when the count has reached its end.
pub fn after(last: Option<Boot>, time_of_day: Duration) -> Option<Boot> {
    let next = match last {
        Some(last) => last.0.checked_add(1)?,
        None => 0,
    };
    Some(Boot(next.max(next_unit(time_of_day).unwrap_or(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_start_has_the_number_of_the_next_unit_and_waits_until_it_begins() {
        assert_eq!(by_clock(EPOCH), Counted { boot: Boot(1), wait: UNIT });
        assert_eq!(by_clock(EPOCH + ms(1)), Counted { boot: Boot(1), wait: ms(249) });
        assert_eq!(by_clock(EPOCH + ms(250)), Counted { boot: Boot(2), wait: UNIT });
        assert_eq!(by_clock(Duration::ZERO), Counted { boot: Boot(1), wait: UNIT });
        let micros = Duration::from_micros(249_999);
        let wait = Duration::from_micros(1);
        assert_eq!(by_clock(EPOCH + micros), Counted { boot: Boot(1), wait });
    }

    #[test]
    fn of_two_starts_the_later_has_the_higher_number_though_the_first_only_just_ran() {
        for began in [0, 1, 100, 249, 250, 1_000_123] {
            let first = by_clock(EPOCH + ms(began));
            let second = by_clock(EPOCH + ms(began) + first.wait);
            assert!(second.boot > first.boot, "{began}");
        }
    }

    #[test]
    fn the_count_lasts_until_2058() {
        let last = EPOCH + UNIT * (u32::MAX - 1);
        assert_eq!(by_clock(last).boot, Boot(u32::MAX));
        assert_eq!(by_clock(last + UNIT).boot, Boot(u32::MAX));
        // 2058-01-01T00:00:00Z.
        assert!(last > Duration::from_secs(2_777_068_800));
    }

    #[test]
    fn a_file_is_believed_against_the_clock_and_the_clock_against_an_old_file() {
        let now = EPOCH + ms(250) * 999;
        assert_eq!(after(None, now), Some(Boot(1000)));
        assert_eq!(after(Some(Boot(7)), now), Some(Boot(1000)));
        assert_eq!(after(Some(Boot(1000)), now), Some(Boot(1001)));
        assert_eq!(after(Some(Boot(u32::MAX)), now), None);
    }

    #[test]
    fn a_clock_that_is_wrong_by_decades_leaves_numbers_for_the_next_starts() {
        // 2080-01-01T00:00:00Z, as the clock of a board without a battery may say.
        let wrong = Duration::from_secs(3_471_292_800);
        assert_eq!(after(Some(Boot(1000)), wrong), Some(Boot(1001)));
        let first = after(None, wrong).unwrap();
        let right = EPOCH + ms(250) * 999;
        assert_eq!(after(Some(first), right), Some(Boot(1000)));
    }
}
