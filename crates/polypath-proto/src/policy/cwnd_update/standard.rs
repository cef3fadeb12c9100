//! One fast recovery for the association; growth only when the cumulative ack advances.
//!
//! RFC 9260 7.2.1, 7.2.2 (growth) and 7.2.4 (fast recovery).
//!
//! T3-rtx ends fast recovery. RFC 9260 7.2.3 requires slow start then, and by 7.2.1 windows grow
//! only outside fast recovery: otherwise the path would keep a window of one packet until all data
//! sent before is acknowledged. TCP has the same rule: after a timeout, "exit the fast recovery
//! procedure" (RFC 6582 3.2 (4); RFC 6675 5.1). Only other paths whose windows were cut stay in
//! fast recovery, since T3-rtx does not concern them, and their windows are not cut again for the
//! same losses.

use super::CwndUpdate;
use crate::ids::{PathId, Tsn};
use crate::policy::entry::Entry;
use crate::policy::loss::SackView;

/// See the [module](self).
pub static STANDARD: Entry<dyn CwndUpdate> = Entry::new(
    "standard",
    "growth when the cumulative TSN ack advances outside fast recovery, one fast recovery \
              for all paths (RFC 9260 7.2)",
    |_| Box::new(Standard::default()),
);

#[derive(Debug, Default)]
struct Standard {
    /// For each path, its fast recovery exit point: the highest TSN outstanding when it entered
    /// fast recovery.
    exits: Vec<Option<Tsn>>,
    /// For each path, whether its window was cut in this fast recovery.
    cut: Vec<bool>,
    /// Whether the current SACK started fast recovery: the windows of all paths with losses are
    /// cut.
    entering: bool,
}

impl CwndUpdate for Standard {
    fn begin(&mut self, paths: usize) {
        // A path added during fast recovery does not take part in it.
        let paths = paths.max(self.exits.len());
        self.exits.resize(paths, None);
        self.cut.resize(paths, false);
    }

    fn on_sack(&mut self, sack: &SackView<'_>) {
        self.entering = false;
        // RFC 9260 7.2.4 (6): "When a SACK chunk acknowledges all TSNs up to and including this
        // exit point, Fast Recovery is exited."
        for exit in &mut self.exits {
            exit.take_if(|exit| !exit.is_after(sack.cumulative));
        }
    }

    fn may_grow(&self, path: PathId, sack: &SackView<'_>) -> bool {
        sack.advanced && self.recover(path).is_none()
    }

    fn recover(&self, path: PathId) -> Option<Tsn> {
        self.exits.get(path.index()).copied().flatten()
    }

    fn on_fast_retransmit(&mut self, path: PathId, _: Tsn, highest: Tsn) -> bool {
        // RFC 9260 7.2.4 (2): "If not in Fast Recovery, adjust the ssthresh and cwnd of the
        // destination address(es) to which the missing DATA chunks were last sent".
        if self.exits.iter().all(Option::is_none) {
            self.exits.fill(Some(highest));
            self.cut.fill(false);
            self.entering = true;
        }
        let Some(exit) = self.exits.get_mut(path.index()) else { return false };
        // A timeout ended the fast recovery of this path, and data was lost since.
        let again = exit.is_none();
        exit.get_or_insert(highest);
        self.cut[path.index()] |= self.entering || again;
        self.entering || again
    }

    fn on_spurious(&mut self, path: PathId) {
        if let Some(exit) = self.exits.get_mut(path.index()) {
            *exit = None;
        }
    }

    fn on_timeout(&mut self, path: PathId) {
        for (i, exit) in self.exits.iter_mut().enumerate() {
            exit.take_if(|_| i == path.index() || !self.cut[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Config;

    const PATHS: usize = 3;

    fn sack(cumulative: u32) -> SackView<'static> {
        SackView {
            cumulative: Tsn(cumulative),
            advanced: true,
            highest_acked: Tsn(cumulative),
            ..SackView::default()
        }
    }

    proptest! {
        /// RFC 9260 7.2.3, 7.2.4: for both rules, a path's window is cut at most once per fast
        /// recovery and grows only outside it. Fast recovery ends by a timeout and when all TSNs up
        /// to the exit point are acknowledged.
        #[test]
        fn a_fast_recovery_ends_with_its_exit_point_or_a_timeout(
            cuc in any::<bool>(),
            steps in prop::collection::vec((0u8..3, 0..PATHS, 1u32..20), 1..200),
        ) {
            let answer = if cuc { &super::super::CUC_V2 } else { &STANDARD };
            let mut rule = answer.make(&Config::rfc9260().setup());
            let (mut highest, mut cumulative) = (20u32, 0u32);
            let mut cut_to = [None; PATHS];
            for (what, path, n) in steps {
                let id = PathId(path as u8);
                match what {
                    0 => {
                        cumulative = highest.min(cumulative + n);
                        highest += 5;
                        rule.begin(PATHS);
                        for path in 0..PATHS {
                            rule.on_cumulatively_acked(PathId(path as u8));
                        }
                        rule.on_sack(&sack(cumulative));
                        for (path, cut) in cut_to.iter_mut().enumerate() {
                            cut.take_if(|exit| *exit <= cumulative);
                            let id = PathId(path as u8);
                            let recovers = rule.recover(id).is_some();
                            prop_assert!(!cut.is_some() || recovers, "path {} left early", path);
                            prop_assert_eq!(rule.may_grow(id, &sack(cumulative)), !recovers);
                        }
                    }
                    1 => {
                        rule.begin(PATHS);
                        rule.on_sack(&sack(cumulative));
                        if rule.on_fast_retransmit(id, Tsn(cumulative + 1), Tsn(highest)) {
                            prop_assert_eq!(cut_to[path], None, "cut twice");
                            cut_to[path] = Some(highest);
                        }
                        prop_assert!(rule.recover(id).is_some());
                    }
                    _ => {
                        rule.on_timeout(id);
                        cut_to[path] = None;
                        prop_assert_eq!(rule.recover(id), None);
                    }
                }
            }
        }
    }
}
