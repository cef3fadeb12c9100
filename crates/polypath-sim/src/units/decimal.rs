//! Exact decimal numbers followed by a unit.

/// Splits "1.5 Mbit/s" into its number and its unit.
pub(super) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// `number` times `scale`, if that is an integer that fits: "1.5" times 10^6 is 1,500,000. Exact,
/// because no floating-point arithmetic is used.
pub(super) fn scaled(number: &str, scale: u64) -> Option<u64> {
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

/// Writes `value` in the largest of the units (largest first) that leaves an integer.
pub(super) fn write(
    f: &mut std::fmt::Formatter<'_>,
    value: u64,
    units: &[(&str, u64)],
) -> std::fmt::Result {
    let fits = |&&(_, scale): &&(&str, u64)| value.is_multiple_of(scale);
    let base = units.last().copied().unwrap_or(("", 1));
    let (name, scale) =
        if value == 0 { base } else { units.iter().find(fits).copied().unwrap_or(base) };
    write!(f, "{} {name}", value / scale)
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
        assert_eq!(split(" 10 Mbit/s"), ("10", "Mbit/s"));
    }
}
