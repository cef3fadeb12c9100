//! SCTP (RFC 9260) over many paths, as a state machine: bytes in, bytes out, deadlines and events.
//!
//! The crate has no sockets, no clock, no threads and no global state. A driver hands in datagrams
//! and the time, and takes datagrams, deadlines and events; the simulator, the emulator and the
//! sockets of polypath are three drivers of this one core. All randomness derives from a [`Seed`]:
//! the same calls produce the same bytes.
//!
//! There are two main types: an [`Endpoint`] finds the association of each packet and answers
//! packets without one statelessly; an [`Association`] is the connection with one peer over all
//! [paths](PathView).
//!
//! The module [`policy`] has one trait for each decision on which the multihoming literature
//! disagrees, and one file for each policy. [`Config`] selects the policies and sets the constants.
//!
//! # Driving an endpoint
//!
//! After [`handle_datagram`](Endpoint::handle_datagram),
//! [`handle_timeout`](Endpoint::handle_timeout) and any call of the application, call
//! [`poll_transmit`](Endpoint::poll_transmit) and [`poll_event`](Endpoint::poll_event) until they
//! return `None`, then set one timer to [`poll_timeout`](Endpoint::poll_timeout).
//!
//! ```
//! use polypath_proto::*;
//!
//! let ip = |s: &str| s.parse::<std::net::IpAddr>().unwrap();
//! let config = |addr| EndpointConfig::new(9260, vec![ip(addr)], Encapsulation::RawIp);
//! let mut a = Endpoint::new(config("10.0.0.1"), Seed::from_u64(1));
//! let listening = EndpointConfig { listen: true, ..config("10.0.0.2") };
//! let mut b = Endpoint::new(listening, Seed::from_u64(2));
//!
//! let now = Time::ZERO;
//! let remote = Remote { address: "10.0.0.2:0".parse().unwrap(), local: None };
//! let id = a.connect(now, 9260, &[remote]).unwrap();
//! let message = Message::new(StreamId(0), &b"hello"[..]);
//! a.association_mut(id).unwrap().send(now, message).unwrap();
//!
//! // A network without delay: what one side transmits, the other one gets.
//! let mut buf = [0; 1500];
//! loop {
//!     let mut quiet = true;
//!     for (from, to) in [(0, 1), (1, 0)] {
//!         let ends = [&mut a, &mut b];
//!         let [x, y] = ends;
//!         let (x, y) = if from < to { (x, y) } else { (y, x) };
//!         while let Some(t) = x.poll_transmit(now, &mut buf) {
//!             quiet = false;
//!             let four_tuple =
//!                 FourTuple { local: t.destination, remote: (t.source, 0).into() };
//!             y.handle_datagram(now, four_tuple, t.ecn, &buf[..t.size]);
//!         }
//!     }
//!     if quiet {
//!         break;
//!     }
//! }
//! let (id, event) = b.poll_event().unwrap();
//! assert!(matches!(event, Event::PathAdded { .. }));
//! let message = b.association_mut(id).unwrap().recv(now).unwrap();
//! assert_eq!(&message.payload[..], b"hello");
//! ```

#![forbid(unsafe_code)]

mod allocation;
mod association;
mod auth;
mod budget;
mod config;
mod constants;
mod cookie;
mod endpoint;
mod error;
mod event;
mod events;
mod extension;
mod few;
mod handshake;
mod ids;
mod init;
mod kind;
mod outbox;
mod path;
mod paths;
pub mod policy;
mod pool;
mod preference;
pub mod quantity;
mod receive;
mod reliability;
mod reply;
mod rng;
mod routes;
mod scope;
mod send;
mod shared;
mod stats;
mod streams;
mod suggest;
mod time;
mod transmit;
pub mod wire;

pub use association::procedures;
pub use association::{
    AcceptedRequests, Association, AssociationState, Budget, StreamMut, StreamReset,
};
pub use auth::{AuthKeys, ChunkTypes, KeyError};
pub use config::{
    Config, ConfigBuilder, DEFAULT_PROFILE, Overrides, PARAMETERS, Parameter, Profile, Registered,
    Registry,
};
pub use constants::{
    BufferSplitting, BurstRule, ConfigError, Constants, Delivery, PathConfirmation, Procedures,
    Thresholds,
};
pub use endpoint::Endpoint;
pub use error::{AddressError, ConnectError, PathError, ReconfigError, SendError};
pub use event::{AddressChange, CloseReason, Event, Message, Received, Reconfigured, Undelivered};
pub use extension::{Extension, Extensions};
pub use ids::{AssociationId, Mid, PathId, Ppid, Ssn, StreamId, Tsn, VerificationTag};
pub use kind::{Kind, Value};
pub use path::{
    LossEstimate, PathMtu, PathMtuState, PathState, PathView, PathsView, RttRange, Window,
};
pub use preference::Preference;
pub use reliability::{Abandoned, AbandonedCounts, Reliability};
pub use rng::{Rng, Seed};
pub use routes::{PrefixRoutes, RouteTable};
pub use shared::{Encapsulation, EndpointConfig, Quoted, Remote, Unreachable};
pub use stats::{AssociationStats, EndpointStats, PathStats};
pub use suggest::closest;
pub use time::Time;
pub use transmit::{Ecn, FourTuple, Fragmentation, Transmit};

// The parameter `procedures` and the registry have the senders by name; an association has their
// procedures.

/// A sender: a value of the parameter `procedures`.
pub(crate) type SenderModel = association::SenderModel;

/// The senders of this build, the default first.
pub(crate) const SENDERS: &[&SenderModel] = association::SENDERS;
