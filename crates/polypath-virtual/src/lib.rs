//! Runs programs that use [`polypath`]'s async API over the links of a [`Scenario`], in virtual
//! time.
//!
//! [`run`] runs a future in a tokio runtime of its own, whose clock does not move while tasks
//! compute, and jumps to the next event when all of them wait: an hour over a satellite link takes
//! seconds. The program binds its endpoints with the options of a [`Host`] of the scenario; links,
//! faults and background traffic are those of the simulator. Nothing else differs from real
//! sockets: the endpoints, their tasks and the program's own `tokio::spawn` and
//! `tokio::time::sleep` are the same code.
//!
//! ```
//! use polypath::{ConnectOptions, Endpoint, EndpointOptions, Message, StreamId};
//! use polypath_sim::Scenario;
//! use polypath_sim::scenario::PathSpec;
//! use polypath_sim::units::{Rate, Span};
//!
//! let path = PathSpec::new(Rate::mbit(10), Span::millis(300));
//! let scenario = Scenario::new("satellite").path(path.clone()).path(path);
//! let took = polypath_virtual::run(&scenario, async |world| {
//!     let far = EndpointOptions { listen: true, port: 9260, ..world.host("receiver")?.options() };
//!     let server = Endpoint::bind(far)?;
//!     let client = Endpoint::bind(world.host("sender")?.options())?;
//!     let start = tokio::time::Instant::now();
//!     let near = client.connect(ConnectOptions::new(9260, server.local_addresses())).await?;
//!     near.send(Message::new(StreamId(0), vec![0; 100_000])).await?;
//!     near.drained().await?;
//!     Ok::<_, Box<dyn std::error::Error>>(start.elapsed())
//! })??;
//! // Two round trips until it is established, and some more for the data.
//! assert!(took.as_millis() > 2 * 600 && took.as_secs() < 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The same run again
//! The same scenario and program give the same run, to the nanosecond, as far as the program draws
//! no random numbers of its own: `tokio::select!` does, unless it is `biased`, and so does the
//! encryption of an endpoint, whose certificates differ by a few bytes in size. [`Host::options`]
//! therefore leave it out.
//!
//! # Limits
//! A task that blocks its thread, waits for another thread, or uses the operating system's sockets
//! is outside of the virtual time. Timers have the millisecond of tokio's, as they have on real
//! sockets; packets arrive at their nanosecond. Processing takes no time.

#![forbid(unsafe_code)]

mod clock;
mod host;
mod socket;
mod world;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use polypath_sim::{Scenario, ScenarioError};
use thiserror::Error;
use tokio::runtime::Builder;

use clock::Idle;
pub use host::Host;
pub use world::World;

/// Reason why a program has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario is invalid, or programs cannot run in it.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario has no host of this name.
    #[error("no host \"{name}\"; the scenario has: {}", known.join(", "))]
    NoHost {
        /// The name.
        name: String,
        /// The names of the hosts.
        known: Vec<String>,
    },
    /// The program had not ended at the `limit` of the scenario's `[run]`.
    #[error("the program has not ended after {limit:?}, the limit of the scenario")]
    TimeLimit {
        /// The limit.
        limit: Duration,
    },
    /// The runtime cannot be created.
    #[error("no runtime: {0}")]
    Runtime(io::Error),
}

/// Runs a program in the network and the time of a scenario, until it ends; tasks that it has
/// spawned are then dropped. The scenario's workload, associations and transport are not used.
///
/// # Errors
/// The scenario is invalid, or the program does not end before the `limit` of its `[run]` (24 h).
///
/// # Panics
/// Inside of a tokio runtime; and if the program panics.
pub fn run<P: Future>(
    scenario: &Scenario,
    program: impl FnOnce(World) -> P,
) -> Result<P::Output, Error> {
    let idle = Arc::new(Idle::default());
    let parks = Arc::clone(&idle);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || parks.tell())
        .build()
        .map_err(Error::Runtime)?;
    let limit = scenario.run.limit.duration();
    runtime.block_on(async {
        let world = World::new(scenario)?;
        let network = clock::drive(world.clone(), &idle, limit);
        tokio::select! {
            biased;
            output = program(world) => Ok(output),
            () = network => Err(Error::TimeLimit { limit }),
        }
    })
}
