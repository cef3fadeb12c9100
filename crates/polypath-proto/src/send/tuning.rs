//! Size of the send buffer: it follows the congestion windows.
//!
//! The buffer has room for the data that has been sent and not yet acknowledged by a cumulative TSN
//! ack, and for two congestion windows of unsent data, so that the application has a round-trip
//! time to refill it (Linux: `tcp_sndbuf_expand`). It grows only for an application that waits for
//! room.

use std::sync::Arc;

use crate::config::Config;
use crate::pool::{Claim, Pool};

/// Congestion windows of unsent data that the buffer has room for.
const WINDOWS: usize = 2;

/// Steps in which the size grows, in bytes.
const STEP: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Tuning {
    /// The smallest and the largest size, in bytes. Equal if the size is fixed.
    least: usize,
    most: usize,
    /// Memory claimed beyond `least`.
    claim: Claim,
}

impl Tuning {
    pub(super) fn new(config: &Config, pool: &Arc<Pool>) -> Self {
        Self {
            least: config.constants().first_send_buffer() as usize,
            most: config.send_buffer() as usize,
            claim: Claim::new(Arc::clone(pool)),
        }
    }

    pub(crate) const fn is_fixed(&self) -> bool {
        self.least == self.most
    }

    /// The size in bytes.
    pub(crate) const fn size(&self) -> usize {
        self.least + self.claim.bytes()
    }

    /// Adapts the size to `windows` bytes of congestion windows while the buffer holds `sent` bytes
    /// sent and `unsent` bytes not sent. `starved`: the application waits for room.
    pub(super) fn adapt(&mut self, windows: usize, sent: usize, unsent: usize, starved: bool) {
        let need = sent.saturating_add(WINDOWS.saturating_mul(windows));
        let need = need.checked_next_multiple_of(STEP).unwrap_or(self.most);
        let need = need.clamp(self.least, self.most);
        let size = self.size();
        if need > size && starved {
            self.claim.grow(need - size);
        } else if need < size / 4 {
            self.shrink_to(need.max(sent + unsent));
        }
    }

    /// Returns the memory for more than `size` bytes.
    pub(super) fn shrink_to(&mut self, size: usize) {
        self.claim.shrink_to(size.saturating_sub(self.least));
    }
}
