//! Whose certificates are taken.

use thiserror::Error;

use crate::certificate;
use crate::fingerprint::{Fingerprint, KnownFingerprint};
use crate::secret::SharedSecret;

/// Whose certificates are taken.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Anybody's: who it is stands in [`Event::Opened`](crate::Event::Opened), for others to judge.
    Anyone,
    /// Those with these fingerprints.
    Known(Vec<KnownFingerprint>),
    /// Those made by somebody who knows the secret.
    Secret(SharedSecret),
}

/// Why a connection of DTLS did not come about, or is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The peer has another certificate than it should have.
    #[error("the peer's certificate is another one than expected: {}", found.short())]
    Certificate {
        /// The one that it has.
        found: Fingerprint,
    },
    /// The peer does not know the shared secret.
    #[error("the peer does not know the shared secret")]
    Secret,
    /// The peer has taken part in the handshake, and closed then.
    #[error("the peer does not trust this host's certificate")]
    ByPeer,
    /// The peer does not encrypt.
    #[error("the peer does not encrypt")]
    Plain,
    /// The peer has no DTLS 1.3, and DTLS 1.2 was not allowed ([`Options::at_least`](crate::Options::at_least)).
    #[error("the peer has no DTLS 1.3, and DTLS 1.2 is not allowed here")]
    Version,
    /// The peer has given the handshake up.
    #[error("the peer has given the handshake up (TLS alert {alert})")]
    Alert {
        /// Its reason (RFC 8446 6.2).
        alert: u8,
    },
}

impl Trust {
    /// Judges a certificate.
    pub(crate) fn judge(&self, certificate: &[u8]) -> Result<Fingerprint, Refusal> {
        let found = Fingerprint::of(certificate);
        match self {
            Self::Anyone => Ok(found),
            Self::Known(known) if known.iter().any(|known| known.matches(&found)) => Ok(found),
            Self::Known(_) => Err(Refusal::Certificate { found }),
            Self::Secret(secret) => match certificate::read(certificate) {
                Some(parts) if secret.is_proven_by(&parts) => Ok(found),
                _ => Err(Refusal::Secret),
            },
        }
    }
}
