//! A discrete-event network that runs the protocol core unchanged, for research and for tests.
//!
//! A [`Scenario`] describes the network, the applications and the faults; [`Scenario::run`] returns
//! an [`Outcome`]. The same scenario and seed give the same outcome and the same capture, byte for
//! byte, on every machine: time is counted in nanoseconds, nothing reads a clock, and every
//! component has its own random stream ([`random`]). A run checks its invariants as it proceeds, in
//! release builds too.
//!
//! ```
//! use polypath_sim::scenario::{Fault, PathSpec, Workload};
//! use polypath_sim::units::{Rate, Size, Span};
//! use polypath_sim::{RunOptions, Scenario};
//!
//! let path = PathSpec::new(Rate::mbit(10), Span::millis(45));
//! let scenario = Scenario::new("failover")
//!     .path(path.clone())
//!     .path(path)
//!     .workload(Workload::bulk(Size(2_000_000)))
//!     .fault(Fault::down(0, Span::secs(1)));
//! let outcome = scenario.run(&RunOptions::default())?;
//! assert!(outcome.associations[0].complete);
//! # Ok::<(), polypath_sim::SimError>(())
//! ```
//!
//! Measurements of your own are [probes](probe); [applications](application) of your own decide
//! what is sent.
//!
//! With the feature `emulator` (default, Unix), the module `emulator` drives the same links in real
//! time between real UDP sockets.

#![forbid(unsafe_code)]

pub mod application;
pub mod datagrams;
#[cfg(all(feature = "emulator", unix))]
pub mod emulator;
mod invariants;
pub mod link;
pub mod network;
mod oracle;
pub mod outcome;
pub mod pcapng;
pub mod probe;
pub mod random;
mod run;
pub mod scenario;
pub mod series;
mod simulation;
mod stack;
pub mod units;
mod watch;
mod wire;
mod workload;

pub use network::trace;
pub use outcome::Outcome;
pub use polypath_proto::{Registry, Time};
pub use run::RunOptions;
pub use scenario::{Scenario, ScenarioError};
pub use simulation::SimError;
