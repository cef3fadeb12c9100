//! What was sent, so that a message about it can be believed.
//!
//! An ICMP message about a datagram that is too large shows its beginning. Who has not seen the datagram knows
//! nothing of what is encrypted in it (RFC 8899 4.6.1): a few bytes of the ciphertext are as good as a
//! verification tag in clear. That of the last records is kept.

use std::collections::VecDeque;

/// Records; more than are on their way over most paths.
const KEPT: usize = 1024;
/// Every path carries records of so many bytes: nobody calls them too large.
const SMALL: usize = 512;
/// Behind the longest header, where every version has ciphertext, or a nonce that was drawn.
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

    /// Whether what begins so was one of them.
    pub(crate) fn know(&self, quoted: &[u8]) -> bool {
        mark(quoted).is_some_and(|mark| self.0.contains(&mark))
    }
}

fn mark(record: &[u8]) -> Option<[u8; 8]> {
    record.get(AT..)?.first_chunk().copied()
}
