//! Randomness from a given seed: unpredictable numbers, and numbers that only need to be uniform.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use rand_core::Rng as _;
use rand_pcg::Pcg64;
use sha2::Sha256;

/// The source of all randomness of an endpoint: equal seeds produce equal runs.
///
/// Drivers on real networks take the seed from the operating system; simulations derive it from a
/// number.
#[derive(Clone)]
pub struct Seed(pub [u8; 32]);

impl Seed {
    /// A seed for simulations. Not for real networks: tags and cookies would be predictable.
    pub fn from_u64(n: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        Self(bytes)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// Numbers that an attacker must not guess (verification tags, initial TSNs, heartbeat nonces,
/// cookie keys): HMAC-SHA-256 of a counter keyed with the seed (RFC 9260 5.3.1, RFC 4086).
#[derive(Clone)]
pub(crate) struct Secret {
    key: [u8; 32],
    counter: u64,
}

impl Secret {
    pub(crate) fn new(seed: &Seed, purpose: &str) -> Self {
        Self { key: hmac(&seed.0, &[purpose.as_bytes()]), counter: 0 }
    }

    pub(crate) fn next_bytes(&mut self) -> [u8; 32] {
        self.counter += 1;
        hmac(&self.key, &[&self.counter.to_le_bytes()])
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        let b = self.next_bytes();
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    }

    /// A seed for an independent generator.
    pub(crate) fn fork(&mut self) -> Seed {
        Seed(self.next_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// HMAC-SHA-256 over the concatenation of `parts`.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    mac(key, parts).finalize().into_bytes().into()
}

/// Whether `tag` is the HMAC-SHA-256 of `parts`, in constant time.
pub(crate) fn hmac_verify(key: &[u8], parts: &[&[u8]], tag: &[u8]) -> bool {
    mac(key, parts).verify_slice(tag).is_ok()
}

/// Whether `tag` is a prefix, of at least 8 bytes, of the HMAC-SHA-256 of `parts`.
pub(crate) fn hmac_verify_truncated(key: &[u8], parts: &[&[u8]], tag: &[u8]) -> bool {
    tag.len() >= 8 && mac(key, parts).verify_truncated_left(tag).is_ok()
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}

/// Breaks ties in place of an [`Rng`]'s own numbers, so that runs can be compared with those of
/// another program.
pub(crate) trait Ties: Send + fmt::Debug {
    /// Draws a number; returns whether it is odd.
    fn odd(&mut self) -> bool;
}

/// Uniform generator for jitter and ties. Its output is predictable: do not use it for tags.
#[derive(Debug)]
pub struct Rng {
    dice: Pcg64,
    /// Breaks ties instead of `dice`, if set.
    ties: Option<Box<dyn Ties>>,
}

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: &Seed) -> Self {
        let (a, b) = seed.0.split_at(16);
        let word = |b: &[u8]| u128::from_le_bytes(b.try_into().expect("16 bytes"));
        Self { dice: Pcg64::new(word(a), word(b)), ties: None }
    }

    /// Breaks ties by `ties`, if given.
    pub(crate) fn with_ties(self, ties: Option<Box<dyn Ties>>) -> Self {
        Self { ties, ..self }
    }

    /// Uniform in `0..n`; 0 if `n` is 0. It does not depend on a library's sampling, whose next
    /// version could change all runs: it is the high half of a 64 x 64 bit product.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.dice.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Whether the `n`-th of several equal candidates, from 2 on, replaces the one chosen so far:
    /// with probability 1/`n`, so that all are equally likely. With `tie_seed` it does for any `n`
    /// if the lowest bit of the number drawn is `bit`.
    pub fn takes_over(&mut self, n: u64, bit: u32) -> bool {
        match &mut self.ties {
            Some(ties) => u32::from(ties.odd()) == bit,
            None => self.below(n) == n - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_numbers() {
        let seed = Seed::from_u64(7);
        let (mut a, mut b) = (Secret::new(&seed, "x"), Secret::new(&seed, "x"));
        assert_eq!(a.next_bytes(), b.next_bytes());
        assert_ne!(a.next_u32(), a.next_u32());
        assert_ne!(Secret::new(&seed, "y").next_u32(), Secret::new(&seed, "x").next_u32());
        let (mut r, mut s) = (Rng::new(&seed), Rng::new(&seed));
        assert!((0..1000).all(|_| {
            let x = r.below(10);
            x < 10 && x == s.below(10)
        }));
        assert_eq!(r.below(0), 0);
    }

    #[test]
    fn equals_are_equally_likely() {
        let mut dice = Rng::new(&Seed::from_u64(7));
        let mut chosen = [0; 3];
        for _ in 0..3000 {
            let third = dice.takes_over(3, 1);
            let second = dice.takes_over(2, 1);
            chosen[if third { 2 } else { usize::from(second) }] += 1;
        }
        assert!(chosen.iter().all(|n| (900..1100).contains(n)), "{chosen:?}");
    }

    #[test]
    fn a_wrong_tag_is_refused() {
        let tag = hmac(b"key", &[b"ab", b"c"]);
        assert!(hmac_verify(b"key", &[b"abc"], &tag));
        assert!(!hmac_verify(b"key", &[b"abd"], &tag));
        assert!(!hmac_verify(b"key", &[b"abc"], &tag[..31]));
        assert!(hmac_verify_truncated(b"key", &[b"abc"], &tag[..8]));
        assert!(!hmac_verify_truncated(b"key", &[b"abd"], &tag[..8]));
        assert!(!hmac_verify_truncated(b"key", &[b"abc"], &tag[..7]));
    }
}
