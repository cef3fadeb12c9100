//! As [`delayed`](super::delayed), and SACKs take turns on the paths on which data has arrived.
//!
//! RFC 9260 6.4: a SACK is sent "to the same destination transport address from which it received
//! the DATA or control chunk", the last of several. If data arrives on two paths in turn, and every
//! second packet is acknowledged, all SACKs use one of them. If that path fails in the direction of
//! the SACKs alone, the sender receives none at all, although the other path works. This policy
//! sends the SACK on a path on which data has arrived since the last one, if there is a choice on
//! another path than the last SACK.

use super::delayed::DELAYED;
use super::{AckPolicy, AckTime, Arrival};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;

/// See the [module](self).
pub static ALTERNATING: Entry<dyn AckPolicy> = Entry::new(
    "alternating",
    "delayed, on each of the paths that carry data in turn, so that one failed return path does \
              not hold all SACKs back",
    |setup| {
        Box::new(Alternating { delayed: DELAYED.make(setup), arrived: 0, last: None, next: None })
    },
);

#[derive(Debug)]
struct Alternating {
    delayed: Box<dyn AckPolicy>,
    /// A bit for each path on which data has arrived since the last SACK.
    arrived: u64,
    /// The path of the last SACK.
    last: Option<PathId>,
    /// The path of a SACK that is to be sent now.
    next: Option<PathId>,
}

fn bit(path: PathId) -> u64 {
    1_u64.rotate_left(path.0.into())
}

impl AckPolicy for Alternating {
    fn when(&mut self, arrival: &Arrival) -> AckTime {
        self.arrived |= bit(arrival.path);
        let when = self.delayed.when(arrival);
        self.next = None;
        if !matches!(when, AckTime::Within(_)) {
            // The next one above the last path, in the order of ids, or else the first one.
            let others = self.arrived & !self.last.map_or(0, bit);
            let above = self.last.map_or(0, |last| others & (u64::MAX - (bit(last) - 1)));
            let next = [above, others].into_iter().find(|paths| *paths != 0);
            let next = next.map_or(arrival.path, |paths| PathId(paths.trailing_zeros() as u8));
            (self.arrived, self.last, self.next) = (0, Some(next), Some(next));
        }
        when
    }

    fn path(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        let next = self.next.filter(|path| path.index() < paths.count() && paths.is_active(*path));
        self.delayed.path(next.unwrap_or(last), paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::path::PathState;
    use crate::policy::testing::TestPaths;

    /// The paths of the SACKs if packets arrive on these paths.
    fn sacks(paths: &TestPaths, arrivals: &[u8]) -> Vec<u8> {
        let mut policy = ALTERNATING.make(&Config::rfc9260().setup());
        let mut packets = 0;
        let mut sent = Vec::new();
        for &path in arrivals {
            packets += 1;
            let arrival = Arrival { path: PathId(path), packets, ..Arrival::default() };
            if policy.when(&arrival) == AckTime::Now {
                packets = 0;
                sent.push(policy.path(PathId(path), paths.view()).0);
            }
        }
        sent
    }

    #[test]
    fn sacks_for_packets_that_arrive_in_turn_take_turns() {
        let paths = TestPaths::new(3);
        assert_eq!(sacks(&paths, &[0, 1, 0, 1, 0, 1, 0, 1]), [0, 1, 0, 1]);
        assert_eq!(sacks(&paths, &[1, 1, 1, 1]), [1, 1]);
        assert_eq!(sacks(&paths, &[0, 0, 1, 1, 2, 2, 0, 0]), [0, 1, 2, 0]);
        assert_eq!(sacks(&paths, &[2, 0, 1, 2, 0, 1]), [0, 1, 0]);
    }

    #[test]
    fn a_failed_path_carries_none_while_another_does() {
        let mut paths = TestPaths::new(2);
        paths.set_state(0, PathState::Inactive);
        assert_eq!(sacks(&paths, &[0, 1, 0, 1]), [1, 1]);
    }
}
