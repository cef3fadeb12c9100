//! What an endpoint is made with, and what a connection is started with.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polypath_dtls::{Identity, Trust, Version};
use polypath_proto::wire::Checksum;
use polypath_proto::{AuthKeys, Config, Remote, RouteTable, Seed};

use crate::routes::SystemRoutes;

/// What carries the SCTP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encapsulation {
    /// UDP (RFC 6951).
    Udp {
        /// UDP port to bind on every local address; 0 is any free port, the same on all of them.
        port: u16,
    },
    /// IP protocol 132 without anything between; needs CAP_NET_RAW, Linux only.
    ///
    /// The kernel's own SCTP must not be in use on the same addresses: it would answer the peer's
    /// packets with ABORT.
    RawIp,
}

/// Who an endpoint is to its peers, and who they have to be.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// This side's key and certificate.
    pub identity: Identity,
    /// Whose certificates are taken.
    pub trust: Trust,
    /// The oldest version of DTLS that is spoken; the newest that both sides have is. Peers of WebRTC often have 1.2
    /// alone. Where 1.2 is allowed, packets have 15 bytes less, and whoever is on the way can make two hosts
    /// that have 1.3 speak 1.2.
    pub minimum: Version,
    /// Connections at a time; each path of an association has one. When there are so many, one without
    /// an open association is closed for the next; if there is none, peers that are new are refused.
    /// Default: 4096.
    pub max_connections: usize,
}

impl Encryption {
    /// DTLS 1.3 only.
    pub const fn new(identity: Identity, trust: Trust) -> Self {
        Self { identity, trust, minimum: Version::Dtls13, max_connections: 4096 }
    }
}

/// How to make an [`Endpoint`](crate::Endpoint). Fields that are not set keep their defaults:
/// `EndpointOptions { listen: true, ..EndpointOptions::default() }`.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// Local addresses, one socket each. An unspecified address (`0.0.0.0`, `::`) stands for all of
    /// the host's addresses of its family. Default: `0.0.0.0`.
    pub addresses: Vec<IpAddr>,
    /// SCTP port. 0 draws one from 49152 to 65535, which is enough for an endpoint that only
    /// connects. Default: 0.
    pub port: u16,
    /// What carries the packets. Default: UDP on any free port.
    pub encapsulation: Encapsulation,
    /// Take associations of others; [`accept`](crate::Endpoint::accept) hands them out.
    /// Default: no.
    pub listen: bool,
    /// Associations at a time; those that are closed count until their last handle is dropped.
    /// Default: 1024.
    pub max_associations: usize,
    /// Constants and policies of associations, unless [`ConnectOptions`] has its own.
    /// Default: the profile `rfc9260`.
    pub config: Config,
    /// Which local address speaks to which remote one. Default: as the operating system routes,
    /// see [`SystemRoutes`].
    pub routes: Arc<dyn RouteTable>,
    /// DTLS below SCTP (RFC 8261), on UDP only. Packets in clear are refused then. Default: none.
    pub encryption: Option<Encryption>,
    /// What to do with packets that have a wrong CRC32c. Default: drop them.
    pub checksum: Checksum,
    /// Bytes to ask of the operating system for each socket's buffers, per direction. The operating
    /// system may grant less (Linux: `net.core.rmem_max` and `wmem_max`, unless the process is
    /// privileged). Default: `None`, twice [`Config::receive_buffer`], but at least 4 MiB: what a peer may send has
    /// to fit even while this side is busy, and a system counts up to twice a datagram's bytes.
    pub socket_buffer: Option<usize>,
    /// Secrets that both sides have, to authenticate chunks ([`Config::authentication`]). Default: none, so
    /// that who has seen the handshake could make chunks that pass.
    pub auth_keys: AuthKeys,
    /// Follow the host's addresses: those that come are bound, those that go are given up, as the operating
    /// system tells (`SCTP_AUTO_ASCONF` of RFC 6458 8.1.23), loopback and link-local ones excepted. What
    /// this means to associations, [`Config::dynamic_addresses`] says. Default: no.
    pub follow_addresses: bool,
    /// Where verification tags, initial TSNs and cookie secrets come from. Default: `None`, the
    /// operating system's randomness. Anything else is for tests.
    pub seed: Option<Seed>,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            addresses: vec![IpAddr::from([0, 0, 0, 0])],
            port: 0,
            encapsulation: Encapsulation::Udp { port: 0 },
            listen: false,
            max_associations: 1024,
            config: Config::rfc9260(),
            routes: Arc::new(SystemRoutes),
            encryption: None,
            checksum: Checksum::Verify,
            socket_buffer: None,
            auth_keys: AuthKeys::default(),
            follow_addresses: false,
            seed: None,
        }
    }
}

impl EndpointOptions {
    /// See [`socket_buffer`](Self::socket_buffer).
    pub(crate) fn socket_bytes(&self) -> usize {
        const LEAST: usize = 4 << 20;
        let window = self.config.receive_buffer() as usize;
        self.socket_buffer.unwrap_or_else(|| LEAST.max(2 * window))
    }
}

/// Whom to connect to, and how.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// SCTP port of the peer.
    pub port: u16,
    /// Addresses of the peer with their UDP encapsulation ports (ignored on raw IP), the primary
    /// one first; each with the local address (one of the endpoint's) that speaks to it, or `None` to
    /// choose by route. More addresses may be learnt from the peer.
    pub remotes: Vec<(SocketAddr, Option<IpAddr>)>,
    /// Constants and policies of this association. Default: those of the endpoint.
    pub config: Option<Config>,
}

impl ConnectOptions {
    /// Connects to the SCTP port `port` of a peer that has these addresses, the primary one first.
    pub fn new(port: u16, remotes: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            port,
            remotes: remotes.into_iter().map(|address| (address, None)).collect(),
            config: None,
        }
    }

    pub(crate) fn proto_remotes(&self, encapsulation: Encapsulation) -> Vec<Remote> {
        self.remotes
            .iter()
            .map(|&(mut address, local)| {
                if encapsulation == Encapsulation::RawIp {
                    address.set_port(0);
                }
                Remote { address, local }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_window_allows_fits_the_sockets() {
        let with = |receive_buffer, socket_buffer| {
            let config = Config::builder().receive_buffer(receive_buffer).build().unwrap();
            EndpointOptions { config, socket_buffer, ..EndpointOptions::default() }.socket_bytes()
        };
        assert_eq!([with(1 << 20, None), with(8 << 20, None)], [4 << 20, 16 << 20]);
        assert_eq!(with(8 << 20, Some(4096)), 4096, "as was asked for");
    }
}
