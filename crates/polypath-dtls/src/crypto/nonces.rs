//! Nonces that are drawn at random and used only once.
//!
//! In DTLS 1.2, a record with AES-GCM carries eight bytes of its nonce, which the sender chooses
//! (RFC 5288 3). `dimpl` draws them at random. If one is used twice with a key, everything
//! encrypted with that key can be forged; by chance alone, 2^20 records contain a duplicate for one
//! in 2^25 keys. So used nonces are kept here, and a nonce that may be among them is rejected; the
//! sender draws another one.

use std::collections::HashSet;

/// Number of bits of a nonce that select its bit in the table, once there are many nonces.
const BITS: u32 = 23;
/// Number of nonces that are kept as they are: a connection with little traffic needs little
/// memory.
const FEW: usize = 1 << 12;
/// Maximum number of records per key. At this number every second bit is set: two draws per record.
const MOST: u32 = 1 << 22;

/// The nonces that a key has been used with.
#[derive(Debug)]
pub(super) struct Nonces {
    seen: Seen,
    used: u32,
}

#[derive(Debug)]
enum Seen {
    Few(HashSet<u64>),
    /// One bit for all nonces with the same lower bits; only one of those nonces is used.
    Many(Box<[u64]>),
}

impl Nonces {
    pub(super) fn new() -> Self {
        Self { seen: Seen::Few(HashSet::new()), used: 0 }
    }

    /// Marks a nonce as used, and returns whether it was unused; also false for some unused ones.
    pub(super) fn take(&mut self, nonce: [u8; 8]) -> bool {
        if self.used >= MOST {
            return false;
        }
        let nonce = u64::from_be_bytes(nonce);
        if let Seen::Few(few) = &self.seen
            && few.len() >= FEW
        {
            let mut many = vec![0; (1 << BITS) / 64].into_boxed_slice();
            for nonce in few {
                let (word, bit) = place(*nonce);
                many[word] |= bit;
            }
            self.seen = Seen::Many(many);
        }
        let new = match &mut self.seen {
            Seen::Few(few) => few.insert(nonce),
            Seen::Many(many) => {
                let (word, bit) = place(nonce);
                let new = many[word] & bit == 0;
                many[word] |= bit;
                new
            }
        };
        self.used += u32::from(new);
        new
    }
}

const fn place(nonce: u64) -> (usize, u64) {
    let place = nonce & ((1 << BITS) - 1);
    ((place / 64) as usize, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers (`SplitMix64`).
    fn drawn(mut state: u64) -> impl Iterator<Item = [u8; 8]> {
        std::iter::repeat_with(move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)).to_be_bytes()
        })
    }

    #[test]
    fn none_is_taken_twice_however_many_there_are() {
        let mut nonces = Nonces::new();
        let some: Vec<_> = drawn(1).take(3 * FEW).collect();
        let taken: Vec<_> = some.iter().filter(|nonce| nonces.take(**nonce)).collect();
        // The more nonces are used, the more are rejected; they are still few.
        assert!(taken.len() > 3 * FEW - 20, "{}", taken.len());
        assert!(!some.iter().any(|nonce| nonces.take(*nonce)));
    }

    #[test]
    fn a_key_has_an_end() {
        let mut nonces = Nonces::new();
        let mut tries = 0u32;
        for nonce in drawn(2) {
            tries += u32::from(nonces.used < MOST);
            if !nonces.take(nonce) && nonces.used == MOST {
                break;
            }
        }
        assert_eq!(nonces.used, MOST);
        // On average, less than three draws for two records.
        assert!(tries < MOST / 2 * 3, "{tries}");
    }
}
