//! Probes: measurements of one's own while a run proceeds.
//!
//! A [`Probe`] sees both sides of every association, after each change or at an interval, and every
//! event of them. The samples of `[series]` come from one. This one finds out how much data is
//! outstanding at most:
//!
//! ```
//! use polypath_sim::probe::{Probe, Seen};
//! use polypath_sim::scenario::{PathSpec, Side, Workload};
//! use polypath_sim::units::{Rate, Size, Span};
//! use polypath_sim::{RunOptions, Scenario, Time};
//!
//! #[derive(Debug, Default)]
//! struct MostInFlight(u32);
//!
//! impl Probe for MostInFlight {
//!     fn sample(&mut self, _: Time, seen: &Seen<'_>) {
//!         if seen.side == Side::Sender {
//!             let in_flight = seen.association.paths().map(|path| path.in_flight).sum();
//!             self.0 = self.0.max(in_flight);
//!         }
//!     }
//! }
//!
//! let mut most = MostInFlight::default();
//! Scenario::new("in flight")
//!     .path(PathSpec::new(Rate::mbit(10), Span::millis(45)))
//!     .workload(Workload::bulk(Size(2_000_000)))
//!     .run_probed(&RunOptions::default(), &mut most)?;
//! assert!(most.0 > 100_000, "10 Mbit/s times 90 ms are 112,500 bytes");
//! # Ok::<(), polypath_sim::SimError>(())
//! ```

use std::fmt;
use std::time::Duration;

use polypath_proto::{Association, Event, Time};

use crate::scenario::Side;

/// A measurement during a run.
pub trait Probe: fmt::Debug + Send {
    /// Time between samples. By default, and if it is zero, a side is sampled after everything that
    /// may have changed it.
    fn interval(&self) -> Option<Duration> {
        None
    }

    /// A sample of one side of an association.
    fn sample(&mut self, now: Time, seen: &Seen<'_>);

    /// One side of an association has reported an event.
    fn event(&mut self, now: Time, seen: &Seen<'_>, event: &Event) {
        let _ = (now, seen, event);
    }
}

/// One side of an association.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Seen<'a> {
    /// Number of the association in the scenario, counted from 0.
    pub number: usize,
    /// Name of the association.
    pub name: &'a str,
    /// The side.
    pub side: Side,
    /// Whether this side has sent messages or is going to.
    pub sends: bool,
    /// Its state.
    pub association: &'a Association,
}
