//! Quantities in decimal notation with a unit: "200 ms", "64 KiB".
//!
//! Reading is exact, because no floating-point arithmetic is used.

use std::time::Duration;

/// The units of a quantity.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// The quantity, with its article.
    pub what: &'static str,
    /// Its notation, with an example.
    pub notation: &'static str,
    /// Each unit that can be read, with its size in the base unit.
    pub read: &'static [(&'static str, u64)],
    /// The units that are written, largest first; the last one is the base unit.
    pub written: &'static [(&'static str, u64)],
}

/// Spans of time, in nanoseconds.
pub const TIME: Units = Units {
    what: "a span of time",
    notation: "a number and ns, us, ms, s, min or h, such as \"45 ms\"",
    read: &[
        ("ns", 1),
        ("us", 1_000),
        ("\u{b5}s", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    written: &[
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ],
};

/// Sizes, in bytes.
pub const SIZE: Units = Units {
    what: "a size",
    notation: "a number and B, kB, MB, GB (powers of 1000), KiB, MiB or GiB (powers of 1024), \
               such as \"64 KiB\"",
    read: &[
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    written: &[
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1_000),
        ("B", 1),
    ],
};

impl Units {
    /// The quantity that `text` denotes, in the base unit; `None` if `text` has no known unit, is
    /// not a number, or is not a whole multiple of the base unit below 2^64.
    pub fn read(&self, text: &str) -> Option<u64> {
        let (number, unit) = split(text);
        let (_, scale) = self.read.iter().find(|(name, _)| *name == unit)?;
        scaled(number, *scale)
    }

    /// `value` in the largest unit in which it is a whole number, as [`read`](Self::read) reads it.
    pub fn write(&self, value: u64) -> String {
        let base = self.written.last().copied().unwrap_or(("", 1));
        let fits = |&&(_, scale): &&(&str, u64)| value != 0 && value.is_multiple_of(scale);
        let (name, scale) = self.written.iter().find(fits).copied().unwrap_or(base);
        format!("{} {name}", value / scale)
    }
}

/// A span of time in text: "200 ms".
pub fn time(span: Duration) -> String {
    TIME.write(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// A number of bytes in text: "64 KiB".
pub fn size(bytes: u64) -> String {
    SIZE.write(bytes)
}

/// Splits "1.5 ms" into its number and its unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// `number` times `scale`, if that is an integer that fits: "1.5" times 10^6 is 1,500,000.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let mut value: u128 = 0;
    let mut divisor: u128 = 1;
    for digit in whole.bytes().filter(|&b| b != b'_') {
        value = value.checked_mul(10)?.checked_add(u128::from(digit.checked_sub(b'0')?))?;
    }
    for digit in fraction.bytes().filter(|&b| b != b'_') {
        value = value.checked_mul(10)?.checked_add(u128::from(digit.checked_sub(b'0')?))?;
        divisor = divisor.checked_mul(10)?;
    }
    let product = value.checked_mul(u128::from(scale))?;
    if product % divisor != 0 {
        return None;
    }
    u64::try_from(product / divisor).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(scaled("1.5", 1_000_000), Some(1_500_000));
        assert_eq!(scaled("0.1", 1_000_000_000), Some(100_000_000));
        assert_eq!(scaled("1_000", 1), Some(1000));
        for wrong in ["", ".", "1.", ".5", "1.5.2", "0.0000000001"] {
            assert_eq!(scaled(wrong, 1000), None, "{wrong}");
        }
        assert_eq!(scaled("99999999999999999999", 10), None);
        assert_eq!(split(" 10 ms"), ("10", "ms"));
    }

    #[test]
    fn quantities_read_back() {
        for (value, text) in [(0, "0 ns"), (1, "1 ns"), (200_000_000, "200 ms"), (60 << 30, "")] {
            let written = TIME.write(value);
            assert_eq!(TIME.read(&written), Some(value));
            assert!(text.is_empty() || written == text, "{written}");
        }
        assert_eq!(SIZE.write(1 << 16), "64 KiB");
        assert_eq!(SIZE.read("1.5kB"), Some(1500));
        assert_eq!(SIZE.read("1500"), None);
    }
}
