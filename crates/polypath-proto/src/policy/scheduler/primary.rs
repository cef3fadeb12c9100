//! All new data on one path: the primary, or an alternate after a failover (RFC 9260 6.4).

use super::{NewData, Scheduler, Turn};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;

/// See the [module](self).
pub static PRIMARY: Entry<dyn Scheduler> = Entry::new(
    "primary",
    "all new data to the primary path or its substitute (RFC 9260 6.4)",
    |_| Box::new(Primary),
);

#[derive(Debug)]
struct Primary;

impl Scheduler for Primary {
    fn next(
        &mut self,
        paths: PathsView<'_>,
        _: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
    ) -> Option<Turn> {
        Some(paths.current()).filter(|path| has_room(*path)).map(Turn::in_order)
    }
}
