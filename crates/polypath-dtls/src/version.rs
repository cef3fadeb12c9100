//! Versions of DTLS.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A version of DTLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 6347, with the extended master secret (RFC 7627) and authenticated encryption only.
    /// Certificates are sent in clear.
    Dtls12,
    /// RFC 9147.
    Dtls13,
}

/// Error: the text is not a version.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("versions of DTLS are 1.2 and 1.3")]
pub struct NotAVersion;

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        match text {
            "1.2" => Ok(Self::Dtls12),
            "1.3" => Ok(Self::Dtls13),
            _ => Err(NotAVersion),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dtls12 => "1.2",
            Self::Dtls13 => "1.3",
        })
    }
}
