//! Concurrent multipath transfer (CMT): new data to every active path whose window has room.
//!
//! Iyengar, Amer, Stewart, "Concurrent Multipath Transfer Using SCTP Multihoming Over Independent
//! End-to-End Paths" (2006): "a sender simultaneously transfers new data over all paths", as soon
//! as there is "space available in the corresponding destination's cwnd". As in the papers' module,
//! each path is filled before the next one, in round robin from the path after the one filled last.
//! Potentially failed paths carry no new data (Natarajan 2009); without an active path, the
//! failover policy's path carries it.

use super::{NewData, Scheduler, Turn};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::{Entry, Needs};

/// See the [module](self).
pub static CONCURRENT: Entry<dyn Scheduler> = Entry::<dyn Scheduler>::new(
    "concurrent",
    "new data to every active path whose window has room, each filled in turn \
              (CMT; Iyengar 2006)",
    |_| Box::new(Concurrent::default()),
)
.with_needs(Needs::NONE.concurrency());

#[derive(Debug, Default)]
pub(super) struct Concurrent {
    /// The path that is being filled, or was filled last.
    filling: Option<PathId>,
    /// Whether everything possible was sent since: the next path is filled next.
    over: bool,
}

impl Scheduler for Concurrent {
    fn turn_over(&mut self) {
        self.over = true;
    }

    fn next(
        &mut self,
        paths: PathsView<'_>,
        _: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
    ) -> Option<Turn> {
        let usable = |path| paths.is_active(path) && has_room(path);
        if let Some(path) = self.filling.filter(|_| !self.over)
            && usable(path)
        {
            return Some(Turn::in_order(path));
        }
        let last = PathId((paths.count() - 1) as u8);
        let next = paths.next_after(self.filling.unwrap_or(last), usable);
        let next = next.or_else(|| {
            let alone = paths.active().next().is_none();
            alone.then(|| paths.current()).filter(|path| has_room(*path))
        });
        self.over &= next.is_none();
        self.filling = next.or(self.filling);
        next.map(Turn::in_order)
    }
}
