//! The memory by which the buffers of an endpoint's associations may grow (`buffer_budget`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Smallest part of the pool that is worth a claim, in bytes.
const LEAST_CLAIM: usize = 4096;

/// Bytes that no association has claimed.
#[derive(Debug)]
pub(crate) struct Pool {
    free: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { free: AtomicUsize::new(bytes) })
    }

    /// Bytes that no association has claimed.
    pub(crate) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }
}

/// One buffer's part of the pool, which it returns when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    pool: Arc<Pool>,
    bytes: usize,
}

impl Claim {
    pub(crate) const fn new(pool: Arc<Pool>) -> Self {
        Self { pool, bytes: 0 }
    }

    /// Bytes claimed.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Claims up to `more` bytes, but at most half of those that are free, so that no association
    /// takes all that others may need.
    pub(crate) fn grow(&mut self, more: usize) {
        let part = |free: usize| {
            let part = more.min(free / 2);
            if part >= LEAST_CLAIM.min(more) { part } else { 0 }
        };
        let taken = self.pool.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            (part(free) > 0).then(|| free - part(free))
        });
        self.bytes += taken.map_or(0, part);
    }

    /// Returns all but `bytes` bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let returned = self.bytes.saturating_sub(bytes);
        self.pool.free.fetch_add(returned, Ordering::Relaxed);
        self.bytes -= returned;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_at_most_half_of_what_is_free() {
        let pool = Pool::new(100_000);
        let mut claims = [(); 3].map(|()| Claim::new(Arc::clone(&pool)));
        claims[0].grow(30_000);
        claims[1].grow(80_000);
        claims[2].grow(80_000);
        assert_eq!(claims.each_ref().map(Claim::bytes), [30_000, 35_000, 17_500]);
        assert_eq!(pool.free(), 17_500);
        claims[1].shrink_to(5_000);
        claims[1].shrink_to(10_000);
        assert_eq!((claims[1].bytes(), pool.free()), (5_000, 47_500));
        drop(claims);
        assert_eq!(pool.free(), 100_000);
    }

    #[test]
    fn scraps_are_not_claimed() {
        let pool = Pool::new(8_000);
        let mut claim = Claim::new(Arc::clone(&pool));
        claim.grow(1 << 20);
        assert_eq!((claim.bytes(), pool.free()), (0, 8_000));
        claim.grow(100);
        assert_eq!(claim.bytes(), 100);
    }
}
