//! Whether a path answers: what a failover policy that does not wait for timeouts needs to know.

use std::time::Duration;

use crate::time::Time;

/// Acknowledgements of what was sent on a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// When the path's silence is to be judged.
    pub(crate) deadline: Option<Time>,
    /// When data or a HEARTBEAT sent on the path was last acknowledged.
    pub(crate) last_answer: Option<Time>,
    /// Time between the last acknowledgement and the transmission of the newest chunk in it.
    pub(crate) last_rtt: Option<Duration>,
    /// When that chunk was sent.
    pub(crate) last_sent: Option<Time>,
    /// Mean difference between such times of successive acknowledgements, as the interarrival
    /// jitter of RFC 3550 6.4.1.
    pub(crate) jitter: Duration,
    /// Since when the path is suspect, while nothing has confirmed that it fails.
    pub(crate) suspect: Option<Time>,
    /// The path is silent, but so are the others: it is not judged before one of them answers.
    pub(crate) waits: bool,
    /// When another path answered for the first time after a silence of all.
    pub(crate) resumed: Option<Time>,
}

impl Silence {
    /// Data that was sent on the path was acknowledged; the newest of it was sent at `sent`, if
    /// that is certain.
    pub(crate) fn acknowledged(&mut self, now: Time, sent: Option<Time>) {
        self.last_answer = Some(now);
        if let Some(sent) = sent {
            let rtt = now.since(sent);
            let difference = self.last_rtt.map_or(Duration::ZERO, |last| last.abs_diff(rtt));
            self.jitter = self.jitter * 15 / 16 + difference / 16;
            (self.last_rtt, self.last_sent) = (Some(rtt), Some(sent));
        }
    }

    /// A path has answered: one that is silent together with it is judged from now on.
    pub(crate) const fn resume(&mut self, now: Time) {
        if self.waits {
            (self.waits, self.resumed) = (false, Some(now));
        }
    }

    /// The instant from which the silence of the path counts.
    pub(crate) fn quiet_since(&self) -> Option<Time> {
        self.last_answer.max(self.resumed)
    }
}
