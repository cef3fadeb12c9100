//! Dormant Primary: when every path has failed, data is sent on the primary.
//!
//! Caro 2006 (failover), III.6: "Instead of continually sending new data to whichever destination
//! was last used in Phase II, the sender continually sends new data to the primary destination".
//!
//! ```text
//!   Phases I, II  -- the last active path fails -->  dormant: new data and retransmissions
//!   (Fig. 1)      <--------------------------------  on the primary
//!                  the primary answers: Phase I;
//!                  another path: Phase II with it
//! ```

use super::FailoverPolicy;
use super::phases::{Dormant, Phased};
use crate::ids::PathId;
use crate::path::{PathState, PathsView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static DORMANT_PRIMARY: Entry<dyn FailoverPolicy> = Entry::new(
    "dormant-primary",
    "as standard; when every path has failed, data goes to the primary \
              (Dormant Primary; Caro 2006, III.6)",
    |_| Phased::boxed(DORMANT),
);

/// The rules of the dormant state.
pub(crate) const DORMANT: Dormant =
    Dormant { data: |_, paths| primary(paths), retransmission: |_, paths| primary(paths) };

/// The primary unless it is unconfirmed, in which case it carries no data (RFC 9260 5.4).
fn primary(paths: PathsView<'_>) -> PathId {
    match paths.state(paths.primary()) {
        PathState::Unconfirmed => paths.current(),
        _ => paths.primary(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::failover::testing::{A, Drill, I};

    /// RFC 9260 5.4.
    #[test]
    fn an_unconfirmed_primary_gets_nothing() {
        let mut drill = Drill::new(&DORMANT_PRIMARY, 2, 0).with_unconfirmed(0);
        assert_eq!(drill.answer(1).current(), 1);
        assert_eq!((drill.error(1).current(), drill.retransmission(1)), (1, 1));
        assert_eq!((drill.answer(0).current(), drill.states()), (0, vec![A, I]));
    }

    /// III.6: new data and retransmissions are sent on the primary.
    #[test]
    fn dormant_all_goes_to_the_primary() {
        let mut drill = Drill::new(&DORMANT_PRIMARY, 3, 0);
        assert_eq!(drill.errors(&[0, 1]).current(), 2);
        assert_eq!(drill.error(2).current(), 0);
        assert_eq!(drill.errors(&[0, 0]).current(), 0);
        assert_eq!([0, 1, 2].map(|last| drill.retransmission(last)), [0, 0, 0]);
        assert_eq!(drill.answer(2).current(), 2);
        assert_eq!(drill.answer(0).current(), 0);
    }
}
