//! Bytes of sent records, to verify ICMP messages about them.
//!
//! An ICMP message about a datagram that is too large quotes its beginning. A host that has not
//! seen the datagram does not know its ciphertext (RFC 8899 4.6.1): a few bytes of the ciphertext
//! prove as much as a verification tag in clear. Those of the last records are kept.

use std::collections::VecDeque;

/// Number of records; more than are in flight on most paths.
const KEPT: usize = 1024;
/// Every path carries records of this many bytes, so that none is reported as too large.
const SMALL: usize = 512;
/// Offset after the longest header, where every version has ciphertext or a random nonce.
const AT: usize = 13;

/// Eight bytes of each of the last large records.
#[derive(Debug, Default)]
pub(crate) struct Marks(VecDeque<[u8; 8]>);

impl Marks {
    pub(crate) fn note(&mut self, record: &[u8]) {
        if record.len() < SMALL {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.extend(mark(record));
    }

    /// Whether the quoted bytes are the beginning of one of the records.
    pub(crate) fn know(&self, quoted: &[u8]) -> bool {
        mark(quoted).is_some_and(|mark| self.0.contains(&mark))
    }
}

fn mark(record: &[u8]) -> Option<[u8; 8]> {
    record.get(AT..)?.first_chunk().copied()
}
