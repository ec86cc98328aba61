//! Bytes as text and back.

use std::fmt;

/// Bytes in hexadecimal, without gaps.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes in hexadecimal, without gaps, quickly.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit =
        |nibble: u8| DIGITS.get(usize::from(nibble)).map_or('?', |digit| char::from(*digit));
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// The bytes of a hexadecimal text; `None` if it is none.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = hex(&bytes);
        assert_eq!(text, Hex(&bytes).to_string());
        assert_eq!(from_hex(&text), Some(bytes));
        assert_eq!(
            (from_hex("abc"), from_hex("zz"), from_hex("ABcd")),
            (None, None, Some(vec![0xab, 0xcd]))
        );
    }
}
