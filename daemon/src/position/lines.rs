//! [`Lines`]: lines out of bytes, none of them without bound.

/// The longest line that is taken. gpsd itself writes none of more than 10 KiB
/// (`GPS_JSON_RESPONSE_MAX` in its gps_json.h).
pub(super) const LINE_MAX: usize = 16 << 10;

/// Puts lines together from what is read, however it was cut.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    /// The line that has begun is too long: all of it is dropped.
    is_too_long: bool,
}

impl Lines {
    /// Takes bytes in, and hands out each line that ends in them; `None` for one that was too long.
    /// It goes on as long as it is told to.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Option<&[u8]>) -> bool) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_end) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.is_too_long |= self.line.len() + text.len() > LINE_MAX;
            if self.is_too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(text);
            }
            if is_end {
                let line = (!self.is_too_long).then_some(self.line.as_slice());
                let is_empty = line.is_some_and(|line| line.trim_ascii().is_empty());
                let goes_on = is_empty || take(line);
                (self.is_too_long, _) = (false, self.line.clear());
                if !goes_on {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let (mut lines, mut all) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |line| {
                all.push(line.map(<[u8]>::to_vec));
                true
            });
            assert!(lines.line.capacity() <= 2 * LINE_MAX, "it stays small");
        }
        all
    }

    #[test]
    fn lines_are_the_same_however_they_were_cut() {
        let text = b"one\r\n\ntwo\nthree";
        let expected = vec![Some(b"one\r".to_vec()), Some(b"two".to_vec())];
        for size in 1..=text.len() {
            assert_eq!(lines(&text.chunks(size).collect::<Vec<_>>()), expected, "{size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_is_taken() {
        let longest = vec![b'x'; LINE_MAX];
        let more = vec![b'y'; 3 * LINE_MAX];
        assert_eq!(
            lines(&[&longest, b"\n", &longest, b"x\n", &more, &more, b"\nnext\n"]),
            [Some(longest.clone()), None, None, Some(b"next".to_vec())]
        );
    }
}
