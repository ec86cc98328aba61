//! What may be the name of an interface.

use super::error::{DeviceError, Problem};

/// Longest name in bytes: `IFNAMSIZ` of the kernel less the final zero.
pub const NAME_MAX: usize = 15;

/// Checks a name before it reaches the kernel, which would cut a longer one short silently, and
/// expand `%d` to a number.
pub fn check(name: &str) -> Result<(), DeviceError> {
    let refuse = |problem| Err(DeviceError::new(name, "be the name of an interface", problem));
    if name.is_empty() || name.len() > NAME_MAX {
        return refuse(Problem::NameLength(name.len()));
    }
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '%');
    if let Some(c) = name.chars().find(|&c| bad(c)) {
        return refuse(Problem::NameCharacter(c));
    }
    if matches!(name, "." | "..") {
        return refuse(Problem::NameCharacter('.'));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_the_kernel_accepts() {
        for name in ["a", "wlan0", "obu-0.100", "fifteen_bytes_x"] {
            check(name).unwrap();
        }
    }

    #[test]
    fn refuses_the_rest() {
        for name in ["", "sixteen_bytes_xx", "a b", "a/b", "a:1", "tap%d", ".", "..", "a\n"] {
            assert!(check(name).is_err_and(|error| error.is_usage()), "{name:?}");
        }
    }
}
