//! A secret that both hosts share, instead of known fingerprints.
//!
//! `dimpl` has no pre-shared keys for DTLS 1.3. So each host makes a certificate whose serial
//! number is the HMAC of its public key under the secret. A host without the secret cannot make
//! one; a host that has seen one cannot use it, because the handshake is signed with the private
//! key that belongs to it.

use std::fmt;
use std::num::NonZeroU32;

use ring::{hmac, pbkdf2};
use thiserror::Error;

use crate::certificate::{Parts, SERIAL};

/// Iterations of PBKDF2. Any host that takes part in a handshake can guess secrets offline, and
/// each guess costs this many iterations.
const ROUNDS: NonZeroU32 = NonZeroU32::new(200_000).unwrap();
/// Minimum number of bytes of a secret.
const LEAST: usize = 8;

/// A secret that both hosts know.
#[derive(Clone)]
pub struct SharedSecret(hmac::Key);

/// The secret is too short.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a shared secret has at least {LEAST} characters")]
pub struct TooShort;

impl SharedSecret {
    /// Derives the key from a text that people have agreed on. Takes about 50 ms.
    ///
    /// # Errors
    ///
    /// The text is shorter than eight bytes.
    pub fn new(text: &str) -> Result<Self, TooShort> {
        if text.len() < LEAST {
            return Err(TooShort);
        }
        let mut key = [0; 32];
        let salt = b"polypath shared secret";
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt, text.as_bytes(), &mut key);
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// The serial number for a public key.
    pub(crate) fn proof(&self, point: &[u8]) -> [u8; SERIAL] {
        let mut serial = [1; SERIAL];
        serial[1..].copy_from_slice(&hmac::sign(&self.0, point).as_ref()[..SERIAL - 1]);
        serial
    }

    /// Whether the host that made a certificate knows the secret.
    pub(crate) fn is_proven_by(&self, parts: &Parts<'_>) -> bool {
        let proof = self.proof(parts.point);
        // In constant time: the duration must not show which bytes differ.
        parts.serial.len() == SERIAL
            && proof.iter().zip(parts.serial).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate;
    use crate::identity::Identity;

    #[test]
    fn only_who_knows_it_can_prove_it() {
        let secret = SharedSecret::new("correct horse").unwrap();
        let other = SharedSecret::new("correct house").unwrap();
        let identity = Identity::with_secret(&secret).unwrap();
        let parts = certificate::read(&identity.certificate).unwrap();
        assert!(secret.is_proven_by(&parts));
        assert!(!other.is_proven_by(&parts));
        let without = Identity::generate().unwrap();
        assert!(!secret.is_proven_by(&certificate::read(&without.certificate).unwrap()));
    }

    #[test]
    fn a_proof_is_for_one_key() {
        let secret = SharedSecret::new("correct horse").unwrap();
        let one = Identity::with_secret(&secret).unwrap();
        let other = Identity::with_secret(&secret).unwrap();
        let serial = certificate::read(&one.certificate).unwrap().serial;
        let point = certificate::read(&other.certificate).unwrap().point;
        assert!(!secret.is_proven_by(&Parts { serial, point }));
    }

    #[test]
    fn short_ones_are_refused() {
        assert_eq!(SharedSecret::new("1234567").unwrap_err(), TooShort);
    }
}
