//! PEM (RFC 7468): keys and certificates as text.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes one block.
pub(crate) fn write(label: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in bytes.chunks(48) {
        for group in line.chunks(3) {
            let byte = |index| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for digit in 0..4 {
                let padding = digit > group.len();
                let value = bits >> (18 - 6 * digit) & 63;
                text.push(if padding { '=' } else { char::from(DIGITS[value as usize]) });
            }
        }
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

/// Reads the block with this label, if the text has exactly one.
pub(crate) fn read(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, rest) = rest.split_once(&format!("-----END {label}-----"))?;
    if rest.contains(&format!("-----BEGIN {label}-----")) {
        return None;
    }
    let digits: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take_while(|&&digit| digit == b'=').count();
    if padding > 2 {
        return None;
    }
    let end = digits.len() - padding;
    for group in digits[..end].chunks(4) {
        let mut bits = 0u32;
        for &digit in group {
            let value = DIGITS.iter().position(|&d| d == digit)?;
            bits = bits << 6 | value as u32;
        }
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(read(&write("THING", &bytes), "THING"), Some(bytes));
        }

        #[test]
        fn anything_can_be_read(body in "[A-Za-z0-9+/=\n?]{0,80}") {
            let _ = read(&format!("-----BEGIN X-----{body}-----END X-----"), "X");
        }
    }

    #[test]
    fn as_others_write_it() {
        assert_eq!(write("X", b"polypath"), "-----BEGIN X-----\ncG9seXBhdGg=\n-----END X-----\n");
        assert_eq!(read("-----BEGIN Y-----\n-----END Y-----\n", "X"), None);
    }
}
