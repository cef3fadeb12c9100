//! SCTP (RFC 9260) over many paths for [tokio](https://tokio.rs), in user space.
//!
//! An [`Endpoint`] binds any number of local addresses, as UDP sockets (RFC 6951, the default) or
//! as raw IP sockets of protocol 132. It connects to peers that have any number of addresses, and
//! accepts associations. An [`Association`] carries messages on many streams; when the path in use
//! fails, another one takes over and no message is lost.
//!
//! ```no_run
//! use polypath::{ConnectOptions, Endpoint, EndpointOptions, Message, StreamId};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::bind(EndpointOptions {
//!     addresses: vec!["10.1.0.1".parse()?, "10.2.0.1".parse()?],
//!     ..EndpointOptions::default()
//! })?;
//! let association = endpoint
//!     .connect(ConnectOptions::new(9260, ["10.1.0.2:9899".parse()?, "10.2.0.2:9899".parse()?]))
//!     .await?;
//! association.send(Message::new(StreamId(0), "hello")).await?;
//! while let Some(received) = association.recv().await? {
//!     println!("{} bytes on stream {}", received.payload.len(), received.stream);
//! }
//! association.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Packets are encrypted unless [`EndpointOptions::encryption`] is `None`: each path runs over a
//! DTLS connection (RFC 8261), and the peer must present the same certificate on all of them. By
//! default any certificate is accepted; name the expected ones ([`Encryption::trust`]), or compare
//! [`Association::peer`]. [`polypath_dtls`] implements DTLS without sockets.
//!
//! [`polypath_proto`] implements the protocol without sockets and without a clock. In this crate,
//! one task per endpoint (the driver) moves bytes between the protocol and the sockets; handles
//! lock the shared state only during a call. All futures are cancellation-safe: dropping one before
//! it is ready leaves nothing half-sent and loses nothing received, except where its documentation
//! states that the operation continues.
//!
//! # Limits
//! IPv6 link-local addresses are not supported: they need a zone, which an SCTP address does not
//! have. The operating system's routing chooses the outgoing interface of a packet; if the choice
//! depends on the source address, the host needs routing rules for that.

#![deny(unsafe_code)]

mod association;
mod driver;
mod encapsulation;
mod endpoint;
mod error;
mod events;
mod interfaces;
mod locals;
mod network;
mod observed;
mod observer;
mod options;
mod routes;
mod secure;
mod shared;
mod socket;
mod stream;
mod watch;

pub use association::Association;
pub use encapsulation::Encapsulation;
pub use endpoint::Endpoint;
pub use error::{BindError, ClosedError, ConnectError, SendError};
pub use events::{Events, EventsError};
pub use network::{DatagramArrival, DatagramSocket, DatagramToSend, Network};
pub use observed::{Observed, Path, Snapshot};
pub use observer::{EndpointSnapshot, Observer};
pub use options::{Announce, ConnectOptions, Encryption, EndpointOptions};
pub use polypath_dtls as dtls;
pub use polypath_dtls::{Fingerprint, Identity, KeyLog, KnownFingerprint, Refusal, Trust, Version};
pub use polypath_proto as proto;
pub use polypath_proto::{
    Abandoned, AbandonedCounts, AcceptedRequests, AddressChange, AddressError, AssociationId,
    AssociationState, AssociationStats, AuthKeys, ChunkTypes, CloseReason, Config, ConfigError,
    Delivery, Ecn, EndpointStats, Event, Extension, Fragmentation, KeyError, Message, PathError,
    PathId, PathMtu, PathMtuState, PathState, PathStats, PathView, Ppid, Preference, Received,
    ReconfigError, Reconfigured, Reliability, RouteTable, StreamId, StreamReset, Thresholds, Time,
    Tsn, Undelivered, Window,
};
pub use routes::SystemRoutes;
pub use secure::ENCRYPTED_ONLY;
pub use socket::{ForeignError, PortSpace, SharedSockets, SocketStats};
pub use stream::{STREAM_END, Stream};
pub use watch::{addresses as host_addresses, addresses_of as interface_addresses};

/// UDP port of SCTP in UDP (RFC 6951 5.1).
pub const UDP_PORT: u16 = 9899;
