//! One fast recovery for the association; growth only when the cumulative ack advances.
//!
//! RFC 9260 7.2.1, 7.2.2 (growth) and 7.2.4 (fast recovery).

use super::CwndUpdate;
use crate::policy::Answer;
use crate::policy::loss::SackView;
use crate::{PathId, Tsn};

/// See the [module](self).
pub static STANDARD: Answer<dyn CwndUpdate> = Answer {
    name: "standard",
    summary: "growth when the cumulative TSN ack advances outside fast recovery, one fast recovery \
              for all paths (RFC 9260 7.2)",
    make: |_| Box::new(Standard::default()),
};

#[derive(Debug, Default)]
struct Standard {
    /// Highest TSN outstanding when fast recovery was entered.
    exit: Option<Tsn>,
    /// The SACK at hand entered fast recovery: every path that it found losses on is cut.
    entering: bool,
}

impl CwndUpdate for Standard {
    fn on_sack(&mut self, sack: &SackView<'_>) {
        self.entering = false;
        // RFC 9260 7.2.4 (5): "When a SACK chunk acknowledges all TSNs up to and including this Fast
        // Recovery exit point, Fast Recovery is exited."
        if self.exit.is_some_and(|exit| !exit.is_after(sack.cumulative)) {
            self.exit = None;
        }
    }

    fn may_grow(&self, _: PathId, sack: &SackView<'_>) -> bool {
        sack.advanced && self.exit.is_none()
    }

    fn recover(&self, _: PathId) -> Option<Tsn> {
        self.exit
    }

    fn on_fast_retransmit(&mut self, _: PathId, _: Tsn, highest: Tsn) -> bool {
        // RFC 9260 7.2.4 (2): "If not in Fast Recovery, adjust the ssthresh and cwnd of the
        // destination address(es) to which the missing DATA chunks were last sent".
        if self.exit.is_none() {
            self.exit = Some(highest);
            self.entering = true;
        }
        self.entering
    }
}
