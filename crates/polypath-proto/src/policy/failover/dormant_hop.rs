//! Dormant Hop: when every path has failed, each timeout moves new data to the next path.
//!
//! Caro 2006 (failover), III.6: "the sender transmits new data to a different destination after
//! each timeout", through all of them in round robin, "until either a destination responds, or the
//! association aborts". Fig. 7:
//!
//! ```text
//!   Phase I  --- errors of the primary > PMR --->  Phase II  ---+ errors of the alternate > PMR:
//!            <--- the primary answers -----------            <--+ the next active path
//!      ^                                             |    ^
//!      | the primary answers          no active path |    | another path answers
//!      |                                             v    |
//!      +-----------------------------------------  Phase III  ---+ timeout: data to the next path,
//!                                                  (dormant)  <--+ whatever its state
//! ```

use super::FailoverPolicy;
use super::phases::{Dormant, Phased, hop};
use crate::policy::entry::Entry;
use crate::policy::retransmission::alternate;

/// See the [module](self).
pub static DORMANT_HOP: Entry<dyn FailoverPolicy> = Entry::new(
    "dormant-hop",
    "as standard; when every path has failed, data goes to the next one with each timeout \
              (Dormant Hop; Caro 2006, III.6)",
    |_| Phased::boxed(DORMANT),
);

/// The rules of the dormant state.
pub(crate) const DORMANT: Dormant = Dormant {
    data: |timeout, paths| {
        if timeout { hop(paths.current(), paths) } else { paths.current() }
    },
    retransmission: alternate,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::failover::testing::{A, Drill, I};

    /// Fig. 7, Phase III: each timeout on the path for new data moves the data to the next path.
    #[test]
    fn each_timeout_hops() {
        let mut drill = Drill::new(&DORMANT_HOP, 3, 0);
        assert_eq!(drill.errors(&[0, 1]).current(), 2);
        let mut way = Vec::new();
        for _ in 0..4 {
            let current = drill.current();
            way.push(drill.error(current).current());
        }
        assert_eq!(way, [0, 1, 2, 0]);
        // An error on another path, such as a HEARTBEAT timeout, moves nothing.
        assert_eq!(drill.error(1).current(), 0);
    }

    /// Fig. 7: the primary's answer leads to Phase I, another path's to Phase II.
    #[test]
    fn an_answer_ends_the_dormant_state() {
        let mut drill = Drill::new(&DORMANT_HOP, 3, 0);
        assert_eq!(drill.errors(&[0, 1, 2]).answer(1).current(), 1);
        assert_eq!(drill.states(), [I, A, I]);
        assert_eq!(drill.answer(0).current(), 0);
    }
}
