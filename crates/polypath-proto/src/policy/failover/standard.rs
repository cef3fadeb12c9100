//! Failover above Path.Max.Retrans errors, to alternates in round robin, and back to the primary on
//! its first answer.
//!
//! RFC 9260 6.4, 8.2; Caro 2006 (failover), Fig. 1:
//!
//! ```text
//!              errors of the primary > PMR
//!   Phase I  ------------------------------->  Phase II   <---+ errors of the alternate > PMR:
//!   new data <-------------------------------  new data on    | the next active path
//!   on the       the primary answers           an alternate  -+ in round robin
//!   primary
//! ```
//!
//! When every path is inactive (the dormant state, which the RFC leaves open), new data stays on
//! the path used last, retransmissions rotate over the paths, and the first path to answer carries
//! the new data.

use super::FailoverPolicy;
use super::phases::{Dormant, Phased};
use crate::policy::entry::Entry;
use crate::policy::retransmission::alternate;

/// See the [module](self).
pub static STANDARD: Entry<dyn FailoverPolicy> = Entry::new(
    "standard",
    "a path is inactive after Path.Max.Retrans errors, the primary is used again when it \
              answers (RFC 9260 8.2)",
    |_| Phased::boxed(DORMANT),
);

/// The rules of the dormant state.
pub(crate) const DORMANT: Dormant =
    Dormant { data: |_, paths| paths.current(), retransmission: alternate };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::failover::testing::{A, Drill, I};

    /// Fig. 1: errors up to PMR change nothing, one more moves new data to the next active path,
    /// and the primary's answer moves it back.
    #[test]
    fn the_primary_is_left_above_pmr_and_taken_back() {
        let mut drill = Drill::new(&STANDARD, 3, 2);
        assert_eq!(drill.errors(&[0, 0]).current(), 0);
        assert_eq!(drill.error(0).current(), 1);
        assert_eq!(drill.states(), [I, A, A]);
        // Errors of the alternate move new data on; further errors of the primary do not.
        assert_eq!(drill.errors(&[0, 1, 1, 1]).current(), 2);
        assert_eq!(drill.answer(1).current(), 2);
        assert_eq!((drill.answer(0).current(), drill.primary()), (0, 0));
        assert!(drill.probed().is_empty());
    }

    /// When every path has failed, new data stays, retransmissions rotate, and the first path to
    /// answer carries the new data.
    #[test]
    fn dormant_it_stays() {
        let mut drill = Drill::new(&STANDARD, 3, 0);
        drill.errors(&[0, 1, 2]);
        assert_eq!((drill.states(), drill.current()), (vec![I, I, I], 2));
        assert_eq!(drill.errors(&[2, 2]).current(), 2);
        assert_eq!([0, 1, 2].map(|last| drill.retransmission(last)), [1, 2, 0]);
        assert_eq!(drill.answer(1).current(), 1);
    }
}
