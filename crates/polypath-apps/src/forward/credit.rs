//! Bytes that may be sent over a connection.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Largest window in bytes that a peer may grant.
pub(crate) const MOST: u64 = 64 << 20;

/// Bytes that the peer has granted and that are not yet sent.
#[derive(Debug)]
pub(crate) struct Credit {
    bytes: Mutex<u64>,
    granted: Notify,
}

impl Credit {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes: Mutex::new(bytes), granted: Notify::new() }
    }

    /// Adds a grant of the peer; false if it grants more than is allowed.
    pub(crate) fn add(&self, bytes: u64) -> bool {
        let mut have = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = have.saturating_add(bytes);
        if sum > MOST {
            return false;
        }
        *have = sum;
        drop(have);
        self.granted.notify_one();
        true
    }

    /// Waits for credit and takes at most `most` bytes of it. One task waits at a time.
    pub(crate) async fn take(&self, most: u64) -> u64 {
        loop {
            let granted = self.granted.notified();
            {
                let mut have = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                let taken = (*have).min(most);
                if taken > 0 {
                    *have -= taken;
                    return taken;
                }
            }
            granted.await;
        }
    }

    /// Gives back what was taken and not used.
    pub(crate) fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_granted_bytes_are_taken() {
        let credit = Credit::new(10);
        assert_eq!(credit.take(4).await, 4);
        assert_eq!(credit.take(100).await, 6);
        let waiting = credit.take(100);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, &mut waiting).await.is_err());
        assert!(credit.add(7));
        assert_eq!(waiting.await, 7);
        assert!(!credit.add(MOST + 1));
    }
}
