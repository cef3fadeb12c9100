//! Secrets of connections, for programs that decrypt captures.

use std::fmt;
use std::sync::Arc;

/// Receives the secrets of every connection, line by line, in the format of NSS (SSLKEYLOGFILE),
/// which Wireshark reads.
///
/// Everybody who has these lines and a capture can read all packets.
#[derive(Clone)]
pub struct KeyLog(Arc<dyn Fn(&str) + Send + Sync>);

impl KeyLog {
    /// Calls `write` with each line, without its end.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    pub(crate) fn write(&self, random: &[u8; 32], secret: &Secret) {
        (self.0)(&format!("{} {} {}", secret.label, Hex(random), Hex(&secret.value)));
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLog(..)")
    }
}

/// A secret of a connection.
pub(crate) struct Secret {
    /// Its label in the format of NSS.
    pub(crate) label: &'static str,
    pub(crate) value: Vec<u8>,
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
