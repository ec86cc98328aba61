//! Sliding windows over sequence numbers, as batman-adv has them (`bitarray.h`,
//! `batadv_window_protected`): bit *n* of a window stands for the number *n* before the last.

use std::time::Duration;

use node_lib::Timestamp;

/// Numbers in a window (`BATADV_TQ_LOCAL_WINDOW_SIZE`, `BATADV_BCAST_MAX_AGE`).
pub(super) const WINDOW: u32 = 64;
/// A number so far ahead is that of another life (`BATADV_EXPECTED_SEQNO_RANGE`).
const EXPECTED: i32 = 65_536;
/// A window is not started anew twice within this (`BATADV_RESET_PROTECTION_MS`).
const RESET_PROTECTION: Duration = Duration::from_secs(30);

/// How far ahead of the last a number is; less than zero: behind it.
pub(super) const fn ahead(number: u32, last: u32) -> i32 {
    number.wrapping_sub(last).cast_signed()
}

/// Is this number marked?
pub(super) fn is_marked(window: u64, ahead: i32) -> bool {
    bit(ahead).is_some_and(|bit| window & bit != 0)
}

fn bit(ahead: i32) -> Option<u64> {
    let behind = u32::try_from(ahead.checked_neg()?).ok()?;
    1_u64.checked_shl(behind)
}

/// Marks a number if `marks`, and moves the window if it is ahead. True if it moved.
pub(super) fn note(window: &mut u64, ahead: i32, marks: bool) -> bool {
    let mark = u64::from(marks);
    match u32::try_from(ahead) {
        Ok(steps @ 1..) => {
            *window = window.checked_shl(steps).unwrap_or(0) | mark;
            true
        }
        _ => match bit(ahead) {
            Some(bit) => {
                *window |= if marks { bit } else { 0 };
                false
            }
            // Whoever counts has started anew.
            None => {
                *window = mark;
                true
            }
        },
    }
}

/// A number that is far off is not believed while an earlier one that was has been so for less than
/// 30 s.
pub(super) fn is_protected(now: Timestamp, ahead: i32, reset: &mut Option<Timestamp>) -> bool {
    if bit(ahead).is_some() || (0..EXPECTED).contains(&ahead) {
        return false;
    }
    if reset.is_some_and(|reset| now.since(reset) < RESET_PROTECTION) {
        return true;
    }
    *reset = Some(now);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_remembers_sixty_four_numbers() {
        let mut window = 0;
        assert!(note(&mut window, 1, true));
        assert!(note(&mut window, 63, false));
        assert!(is_marked(window, -63) && !is_marked(window, 0) && !is_marked(window, 1));
        assert!(!note(&mut window, 0, true));
        assert!(is_marked(window, 0));
        assert!(note(&mut window, 1, true));
        assert_eq!(window, 0b11);
        assert!(!is_marked(window, -64));
        assert!(note(&mut window, -64, true), "started anew");
        assert_eq!(window, 1);
        assert!(note(&mut window, 64, true), "all of it was missed");
        assert_eq!(window, 1);
        assert!(note(&mut window, i32::MIN, false));
        assert_eq!(window, 0);
    }

    #[test]
    fn who_starts_anew_twice_within_thirty_seconds_is_not_believed() {
        let mut reset = None;
        let at = Timestamp::from_millis;
        assert!(!is_protected(at(0), -63, &mut reset));
        assert!(!is_protected(at(0), 65_535, &mut reset) && reset.is_none());
        assert!(!is_protected(at(1000), -64, &mut reset));
        assert!(is_protected(at(30_999), 65_536, &mut reset));
        assert!(!is_protected(at(31_000), 65_536, &mut reset));
    }
}
