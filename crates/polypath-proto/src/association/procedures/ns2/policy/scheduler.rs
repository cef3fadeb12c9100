//! The module sends TSNs in order.

use crate::policy::entry::Entry;
use crate::policy::scheduler::{self, CONCURRENT, Scheduler};

/// Data in order on all paths.
pub(super) static DELAY_AWARE: Entry<dyn Scheduler> = Entry::<dyn Scheduler>::new(
    scheduler::DELAY_AWARE.name,
    scheduler::DELAY_AWARE.summary,
    |setup| CONCURRENT.make(setup),
);
