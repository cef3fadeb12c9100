//! Dormant Primary: when every path has failed, data goes to the primary.
//!
//! Caro 2006 (failover), III.6: "Instead of continually sending new data to whichever destination was
//! last used in Phase II, the sender continually sends new data to the primary destination". ns-2:
//! dormantAction_ 1.
//!
//! ```text
//!   Phases I, II  -- the last active path fails -->  dormant: new data and retransmissions
//!   (Fig. 1)      <--------------------------------  to the primary
//!                  the primary answers: Phase I;
//!                  another one: Phase II with it
//! ```

use super::FailoverPolicy;
use super::phases::{Dormant, Phased};
use crate::policy::Answer;

/// See the [module](self).
pub static DORMANT_PRIMARY: Answer<dyn FailoverPolicy> = Answer {
    name: "dormant-primary",
    summary: "as standard; when every path has failed, data goes to the primary \
              (Dormant Primary; Caro 2006, III.6)",
    make: |config| {
        Phased::boxed(
            config,
            Dormant {
                data: |_, paths| paths.primary(),
                retransmission: |_, paths| paths.primary(),
            },
        )
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::failover::testing::Drill;

    /// III.6: new data and retransmissions go to the primary.
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
