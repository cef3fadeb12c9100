//! Fingerprints of certificates (RFC 8122 5): SHA-256, and a short form for people to compare.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};
use thiserror::Error;

/// Bytes of the short form: it takes 2^80 attempts to find another certificate with the same one.
const SHORT: usize = 10;

/// SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Self(bytes)
    }

    /// The first 80 bits, in groups of four hexadecimal digits.
    pub fn short(&self) -> String {
        grouped(&self.0[..SHORT])
    }
}

/// All 256 bits, in groups of four hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({})", self.short())
    }
}

fn grouped(bytes: &[u8]) -> String {
    let groups: Vec<String> = bytes
        .chunks(2)
        .map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    groups.join("-")
}

/// A fingerprint that a person has entered: all of it, or at least its short form.
#[derive(Clone, PartialEq, Eq)]
pub struct KnownFingerprint(Vec<u8>);

/// Error: the text is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a fingerprint has 20 to 64 hexadecimal digits, like 0123-4567-89ab-cdef-0123")]
pub struct NotAFingerprint;

impl KnownFingerprint {
    /// Whether `found` begins with the known bytes.
    pub fn matches(&self, found: &Fingerprint) -> bool {
        found.0.starts_with(&self.0)
    }
}

impl From<Fingerprint> for KnownFingerprint {
    fn from(fingerprint: Fingerprint) -> Self {
        Self(fingerprint.0.to_vec())
    }
}

impl FromStr for KnownFingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let digits: Option<Vec<u8>> = text
            .chars()
            .filter(|c| !matches!(c, '-' | ':'))
            .map(|c| c.to_digit(16).map(|digit| digit as u8))
            .collect();
        let digits = digits.ok_or(NotAFingerprint)?;
        if !(2 * SHORT..=64).contains(&digits.len()) || !digits.len().is_multiple_of(2) {
            return Err(NotAFingerprint);
        }
        Ok(Self(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
    }
}

/// The digits, in groups of four.
impl fmt::Display for KnownFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(&self.0))
    }
}

impl fmt::Debug for KnownFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownFingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_and_the_long_one_are_known_again() {
        let fingerprint = Fingerprint::of(b"certificate");
        assert_eq!(fingerprint.short().len(), 24);
        for text in [fingerprint.short(), fingerprint.to_string()] {
            let known: KnownFingerprint = text.parse().unwrap();
            assert!(known.matches(&fingerprint), "{text}");
            assert!(!known.matches(&Fingerprint::of(b"another")), "{text}");
            assert_eq!(known.to_string(), text);
        }
        let colons = fingerprint.to_string().replace('-', ":").to_uppercase();
        assert!(colons.parse::<KnownFingerprint>().unwrap().matches(&fingerprint));
    }

    #[test]
    fn less_is_none() {
        for text in ["", "0123-4567-89ab-cdef-01", "0123-4567-89ab-cdef-012", "x", &"0".repeat(66)]
        {
            assert_eq!(text.parse::<KnownFingerprint>(), Err(NotAFingerprint), "{text}");
        }
    }
}
