//! A limit of the rate at which a sender sends.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The longest burst after a pause.
const BURST: Duration = Duration::from_millis(100);

/// Spaces messages so that their bytes keep to a rate.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Bytes per second; `None` without a limit.
    rate: Option<u64>,
    /// When the next message may be sent.
    next: Instant,
}

impl Pace {
    /// At most `rate` bytes per second.
    pub(crate) fn new(rate: Option<u64>) -> Self {
        Self { rate: rate.map(|rate| rate.max(1)), next: Instant::now() }
    }

    /// Waits until `bytes` may be sent.
    pub(crate) async fn wait(&mut self, bytes: usize) {
        let Some(rate) = self.rate else { return };
        let now = Instant::now();
        self.next = self.next.max(now.checked_sub(BURST).unwrap_or(now));
        let due = self.next;
        self.next += Duration::from_secs_f64(bytes as f64 / rate as f64);
        if due > now {
            sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_rate_is_kept() {
        let begin = Instant::now();
        let mut pace = Pace::new(Some(1_000_000));
        for _ in 0..31 {
            pace.wait(10_000).await;
        }
        let seconds = begin.elapsed().as_secs_f64();
        // 300 kB at 1 MB/s, less the burst.
        assert!((0.19..1.0).contains(&seconds), "{seconds}");
    }
}
