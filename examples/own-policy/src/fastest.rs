//! New data on the path with the shortest round-trip time that has room: the default of Linux'
//! MPTCP.

use polypath_proto::policy::prelude::*;

/// See the [module](self).
pub static FASTEST: Entry<dyn Scheduler> = Entry::<dyn Scheduler>::new(
    "fastest",
    "new data to the active path with room that has the shortest round-trip time",
    |_| Box::new(Fastest),
)
.with_needs(Needs::NONE.concurrency());

#[derive(Debug)]
struct Fastest;

impl Scheduler for Fastest {
    fn next(&mut self, paths: PathsView<'_>, _: &NewData, room: HasRoom<'_>) -> Option<Turn> {
        paths.with_room(room).min_by_key(|path| path.srtt).map(|path| Turn::in_order(path.id))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use polypath_proto::policy::testing::{self, TestPaths};

    use super::*;

    #[test]
    fn the_shortest_round_trip_is_first_while_it_has_room() {
        let mut fastest = testing::make(&FASTEST);
        let mut paths = TestPaths::new(2);
        paths.measure(0, Duration::from_millis(90));
        paths.measure(1, Duration::from_millis(20));
        let mut next = |has_room: &dyn Fn(PathId) -> bool| {
            fastest.next(paths.view(), &testing::new_data(3000), has_room).map(|turn| turn.path)
        };
        assert_eq!(next(&|_| true), Some(PathId(1)));
        assert_eq!(next(&|path| path == PathId(0)), Some(PathId(0)));
        assert_eq!(next(&|_| false), None);
    }
}
