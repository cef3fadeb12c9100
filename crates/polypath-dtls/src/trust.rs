//! Which certificates are accepted.

use thiserror::Error;

use crate::fingerprint::{Fingerprint, KnownFingerprint};

/// Which certificates are accepted.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Any certificate; [`Event::Opened`](crate::Event::Opened) reports its fingerprint, for the
    /// caller to check.
    Anyone,
    /// Certificates with these fingerprints.
    Known(Vec<KnownFingerprint>),
}

/// Why a DTLS connection was not established, or is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The peer's certificate is not an expected one.
    #[error("the peer's certificate is another one than expected: {}", found.short())]
    Certificate {
        /// Fingerprint of the peer's certificate.
        found: Fingerprint,
    },
    /// The peer rejected this host's certificate by an alert, or closed the connection before it
    /// sent a packet.
    #[error("the peer does not trust this host's certificate")]
    ByPeer,
    /// The peer does not encrypt.
    #[error("the peer does not encrypt")]
    Plain,
    /// The peer does not support DTLS 1.3, and DTLS 1.2 is not allowed
    /// ([`Options::at_least`](crate::Options::at_least)).
    #[error("the peer has no DTLS 1.3, and DTLS 1.2 is not allowed here")]
    Version,
    /// The peer has aborted the handshake.
    #[error("the peer has given the handshake up (TLS alert {alert})")]
    Alert {
        /// Description of the alert (RFC 8446 6.2).
        alert: u8,
    },
}

impl Trust {
    /// Accepts or rejects a certificate.
    pub(crate) fn judge(&self, certificate: &[u8]) -> Result<Fingerprint, Refusal> {
        let found = Fingerprint::of(certificate);
        match self {
            Self::Anyone => Ok(found),
            Self::Known(known) if known.iter().any(|known| known.matches(&found)) => Ok(found),
            Self::Known(_) => Err(Refusal::Certificate { found }),
        }
    }
}
