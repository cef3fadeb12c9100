//! Contents of messages: bytes derived from the flow, the message number and the offset, so that a
//! receiver can check any piece without a copy of the data sent.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::random::{Random, split_mix};

/// Size of the table in bytes. A content begins in its first half, so that contents of up to half
/// its size are slices of it and need no copy.
const TABLE: usize = 1 << 20;

/// The content of a message is the table from the message's place on, wrapping around at its end.
static CONTENT: LazyLock<Box<[u8]>> = LazyLock::new(|| {
    let mut random = Random::named(0, "content");
    let words = (0..TABLE / 8).flat_map(|_| random.bits().to_le_bytes());
    words.collect()
});

/// Place in the table at which the content of a message begins.
pub(super) fn place(flow: u64, number: u64) -> usize {
    let mut state = flow ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (split_mix(&mut state) % (TABLE as u64 / 2)) as usize
}

/// The content of a message of this size.
pub(super) fn payload(place: usize, size: usize) -> Bytes {
    let table: &'static [u8] = &CONTENT;
    match table.get(place..place + size) {
        Some(slice) => Bytes::from_static(slice),
        None => table.iter().copied().cycle().skip(place).take(size).collect(),
    }
}

/// Whether `piece` is the content at `offset`.
pub(super) fn matches(place: usize, offset: usize, piece: &[u8]) -> bool {
    let mut at = (place + offset) % TABLE;
    let mut rest = piece;
    while !rest.is_empty() {
        let here = rest.len().min(TABLE - at);
        if rest[..here] != CONTENT[at..at + here] {
            return false;
        }
        (rest, at) = (&rest[here..], 0);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_match_at_their_offset_only() {
        for (number, size) in [(0, 1), (1, 1452), (2, 200_000), (3, 3 * TABLE)] {
            let place = place(7, number);
            let bytes = payload(place, size);
            assert_eq!(bytes.len(), size);
            assert!(matches(place, 0, &bytes));
            let middle = size / 2;
            assert!(matches(place, middle, &bytes[middle..]));
            if size > 100 {
                assert!(!matches(place, middle + 1, &bytes[middle..size - 1]));
                let mut wrong = bytes.to_vec();
                wrong[size - 1] ^= 1;
                assert!(!matches(place, 0, &wrong));
            }
        }
        assert_ne!(place(7, 1), place(8, 1));
    }
}
