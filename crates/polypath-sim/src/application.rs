//! Applications: what one side of an association sends, and when.
//!
//! The kinds of workload are applications, too. One of your own is a value that implements
//! [`Application`]; [`RunOptions::applications`](crate::RunOptions) has it under a name, and
//! `[workload]` with `kind = "application"` and `application = "NAME"` uses it. It decides on
//! sizes and times only: the simulator makes the contents, and checks that they arrive once, intact
//! and in order.
//!
//! This one sends a picture each 40 ms, and smaller ones once pictures have to wait for room:
//!
//! ```
//! use std::time::Duration;
//!
//! use polypath_sim::application::{Application, Applications, Message};
//! use polypath_sim::scenario::{PathSpec, Workload};
//! use polypath_sim::units::{Rate, Span};
//! use polypath_sim::{RunOptions, Scenario, Time};
//!
//! #[derive(Debug)]
//! struct Camera {
//!     pictures: u32,
//!     size: u32,
//!     due: Time,
//! }
//!
//! impl Application for Camera {
//!     fn next(&mut self, now: Time) -> Option<Message> {
//!         if self.is_finished() || now < self.due {
//!             return None;
//!         }
//!         if now.since(self.due) > Duration::from_millis(40) {
//!             self.size = (self.size / 2).max(1_000);
//!             self.due = now;
//!         }
//!         self.due = self.due + Duration::from_millis(40);
//!         self.pictures -= 1;
//!         Some(Message::new(self.size))
//!     }
//!
//!     fn wakes_at(&self) -> Option<Time> {
//!         Some(self.due)
//!     }
//!
//!     fn is_finished(&self) -> bool {
//!         self.pictures == 0
//!     }
//! }
//!
//! let applications = Applications::default()
//!     .with("camera", |_, _| Box::new(Camera { pictures: 250, size: 50_000, due: Time::ZERO }));
//! let scenario = Scenario::new("camera")
//!     .path(PathSpec::new(Rate::mbit(8), Span::millis(20)))
//!     .workload(Workload::application("camera"));
//! let outcome = scenario.run(&RunOptions { applications, ..RunOptions::default() })?;
//! assert_eq!(outcome.associations[0].forward.messages_delivered, 250);
//! # Ok::<(), polypath_sim::SimError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use polypath_proto::{Reliability, Time};

use crate::random::Random;
use crate::scenario::Side;

/// The application at one side of an association.
///
/// It is asked for messages once the association is established, after each message of the peer,
/// when the send buffer has room again, and when it wakes.
pub trait Application: fmt::Debug + Send {
    /// The message to send now, if any. It is asked again until it has none or the send buffer is
    /// full; a message for which the buffer has no room is kept and sent later.
    fn next(&mut self, now: Time) -> Option<Message>;

    /// A message of the peer has arrived as a whole.
    fn received(&mut self, now: Time, message: &Message) {
        let _ = (now, message);
    }

    /// The time at which it has to be asked again, whatever else happens. A time that has come has
    /// no effect.
    fn wakes_at(&self) -> Option<Time> {
        None
    }

    /// Whether it will send no more. Once both sides have finished and everything has arrived, the
    /// association is shut down.
    fn is_finished(&self) -> bool;
}

/// A message without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Bytes, from 1 to the association's `max_message_size`.
    pub size: u32,
    /// Stream; 0 by default.
    pub stream: u16,
    /// Whether it may overtake others of its stream.
    pub unordered: bool,
    /// When it may be abandoned; never by default.
    pub reliability: Reliability,
}

impl Message {
    /// An ordered, reliable message of `size` bytes on stream 0.
    pub const fn new(size: u32) -> Self {
        Self { size, stream: 0, unordered: false, reliability: Reliability::Reliable }
    }
}

/// Makes the application of one side. The random numbers are those of this workload and side, the
/// same in every run with this seed.
pub type Factory = dyn Fn(Side, Random) -> Box<dyn Application> + Send + Sync;

/// Applications of one's own, by name.
#[derive(Clone, Default)]
pub struct Applications(BTreeMap<String, Arc<Factory>>);

impl Applications {
    /// Adds one, or replaces that of this name.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        make: impl Fn(Side, Random) -> Box<dyn Application> + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(name.into(), Arc::new(make));
        self
    }

    /// Their names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Factory> {
        self.0.get(name).map(AsRef::as_ref)
    }
}

impl fmt::Debug for Applications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
