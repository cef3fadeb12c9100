//! DTLS below SCTP (RFC 8261), over many paths, without sockets and without a clock.
//!
//! A [`Layer`] sits between SCTP packets and UDP datagrams. Each path (a local and a remote address
//! with their UDP ports) has its own DTLS 1.3 connection (RFC 9147), or a DTLS 1.2 connection
//! (RFC 6347) if that is allowed and the peer does not support 1.3. The side that first has a
//! packet for the path starts the handshake. Each SCTP packet is one record. The certificate
//! identifies the peer across its connections: [`Layer::seal`] takes the fingerprint that the
//! association expects, and [`Layer::handle_datagram`] reports the fingerprint with each packet, so
//! that no other host can take part over a further path.
//!
//! An unknown host costs no memory before it has proved its address: its first ClientHello is
//! answered with a cookie, and datagrams that belong to no connection are dropped and counted.
//! `docs/security.md` has the reasons.
//!
//! ```
//! use std::time::Instant;
//!
//! use polypath_dtls::{Identity, Layer, Options, Trust};
//! use polypath_proto::{FourTuple, Time};
//!
//! let origin = Instant::now();
//! let options = || Options::new(Identity::generate().unwrap(), Trust::Anyone);
//! let layer = || Layer::new(options(), &[7; 32], origin);
//! let (mut here, mut there) = (layer(), layer());
//! let (local, remote) = ("192.0.2.1:9899".parse()?, "192.0.2.2:9899".parse()?);
//! let (out, back) = (FourTuple { local, remote }, FourTuple { local: remote, remote: local });
//!
//! let now = Time::ZERO;
//! let mut received = Vec::new();
//! here.seal(now, out, None, b"a packet", &mut Vec::new());
//! loop {
//!     let mut quiet = true;
//!     while let Some((_, datagram)) = here.poll_transmit() {
//!         quiet = false;
//!         there.handle_datagram(now, back, &datagram, &mut |_, packet: &[u8]| {
//!             received = packet.to_vec();
//!         });
//!     }
//!     while let Some((_, datagram)) = there.poll_transmit() {
//!         quiet = false;
//!         here.handle_datagram(now, out, &datagram, &mut |_, _: &[u8]| {});
//!     }
//!     if quiet {
//!         break;
//!     }
//! }
//! assert_eq!(received, b"a packet");
//! assert_eq!(here.peer(out), Some(there.fingerprint()));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

#![forbid(unsafe_code)]

mod certificate;
mod connection;
mod cookie;
mod crypto;
mod fingerprint;
mod hello;
mod identity;
mod key_log;
mod layer;
mod marks;
mod outgoing;
mod pem;
mod slots;
mod trust;
mod version;

pub use fingerprint::{Fingerprint, KnownFingerprint, NotAFingerprint};
pub use hello::{REFUSAL, is_client_hello};
pub use identity::{Identity, IdentityError};
pub use key_log::KeyLog;
pub use layer::{Event, Layer, OVERHEAD, OVERHEAD_12, Options, Stats, Upper};
pub use trust::{Refusal, Trust};
pub use version::{NotAVersion, Version};
