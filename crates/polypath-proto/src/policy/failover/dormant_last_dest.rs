//! Dormant LastDest: when every path has failed, new data stays on the path used last.
//!
//! Caro 2006 (failover), III.6: the sender "continues sending new data to whichever destination was
//! last used in Phase II"; heartbeats probe the others.
//!
//! ```text
//!   Phases I, II  -- the last active path fails -->  dormant: new data on the alternate used last,
//!   (Fig. 1)      <--------------------------------  each retransmission on the same path
//!                  the primary answers: Phase I;
//!                  another path: Phase II with it
//! ```

use super::FailoverPolicy;
use super::phases::{Dormant, Phased};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static DORMANT_LAST_DEST: Entry<dyn FailoverPolicy> = Entry::new(
    "dormant-last-dest",
    "as standard; when every path has failed, data stays with the path used last \
              (Dormant LastDest; Caro 2006, III.6)",
    |_| Phased::boxed(DORMANT),
);

/// The rules of the dormant state.
pub(crate) const DORMANT: Dormant =
    Dormant { data: |_, paths| paths.current(), retransmission: |last, _| last };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::failover::testing::{A, Drill, I};

    /// III.6: new data and retransmissions stay on the path used last.
    #[test]
    fn dormant_nothing_moves() {
        let mut drill = Drill::new(&DORMANT_LAST_DEST, 3, 0);
        drill.errors(&[0, 1]);
        assert_eq!((drill.states(), drill.current()), (vec![I, I, A], 2));
        assert_eq!(drill.errors(&[2, 2, 0, 2]).current(), 2);
        assert_eq!([0, 1, 2].map(|last| drill.retransmission(last)), [0, 1, 2]);
        assert_eq!(drill.answer(1).current(), 1);
        assert_eq!(drill.answer(0).current(), 0);
    }
}
