//! Options of an endpoint and of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polypath_dtls::{Identity, KeyLog, Trust, Version};
use polypath_proto::wire::Checksum;
use polypath_proto::{AuthKeys, Config, Preference, Remote, RouteTable, Seed};

use crate::encapsulation::Encapsulation;
use crate::network::Network;
use crate::routes::SystemRoutes;
use crate::socket::SharedSockets;

/// The endpoint's identity, and the identities it accepts.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// This side's key and certificate. `None` creates new ones, which last as long as the
    /// endpoint.
    pub identity: Option<Identity>,
    /// Which certificates are accepted.
    pub trust: Trust,
    /// Oldest DTLS version to accept; the newest one that both sides have is used. WebRTC peers
    /// often have only 1.2. If 1.2 is allowed, the payload of each packet shrinks by 15 bytes, and
    /// an attacker on the path can downgrade two hosts that have 1.3 to 1.2.
    pub minimum: Version,
    /// Maximum number of DTLS connections; each path of an association uses one. At the limit, a
    /// new connection replaces one without an open association; if there is none, new peers are
    /// refused. Default: 4096.
    pub max_connections: usize,
    /// Where the secrets of all connections go, for programs that decrypt captures. Default:
    /// `None`, nowhere.
    pub key_log: Option<KeyLog>,
}

impl Encryption {
    /// Requires DTLS 1.3.
    pub const fn new(identity: Identity, trust: Trust) -> Self {
        Self {
            identity: Some(identity),
            trust,
            minimum: Version::Dtls13,
            max_connections: 4096,
            key_log: None,
        }
    }
}

impl Default for Encryption {
    /// DTLS 1.3 with a new identity, for any peer. This protects from eavesdroppers, but not from a
    /// host in between: compare [`Association::peer`](crate::Association::peer) with the expected
    /// fingerprint, or set [`trust`](Self::trust).
    fn default() -> Self {
        Self {
            identity: None,
            trust: Trust::Anyone,
            minimum: Version::Dtls13,
            max_connections: 4096,
            key_log: None,
        }
    }
}

/// Options of [`Endpoint::bind`](crate::Endpoint::bind). Fields that are not set keep their
/// defaults:
/// `EndpointOptions { listen: true, ..EndpointOptions::default() }`.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// Local addresses, one socket each. An unspecified address (`0.0.0.0`, `::`) means all of the
    /// host's addresses of its family. Default: `0.0.0.0`.
    pub addresses: Vec<IpAddr>,
    /// SCTP port. 0 is enough for an endpoint that only connects: it takes the number of the UDP
    /// port if that is any free one, which no other endpoint of the host has, or else a random
    /// number from 49152 to 65535. Default: 0.
    pub port: u16,
    /// Encapsulation of the packets. Default: UDP on any free port.
    pub encapsulation: Encapsulation,
    /// Whether to accept associations; [`accept`](crate::Endpoint::accept) returns them.
    /// Default: no.
    pub listen: bool,
    /// Maximum number of associations; closed ones count until their last handle is dropped.
    /// Default: 1024.
    pub max_associations: usize,
    /// Constants and policies of associations, unless [`ConnectOptions`] overrides them.
    /// Default: the profile `modern`.
    pub config: Config,
    /// Chooses the local address for each remote one. Default: the operating system's routes, see
    /// [`SystemRoutes`].
    pub routes: Arc<dyn RouteTable>,
    /// DTLS below SCTP (RFC 8261), on UDP only. Unencrypted packets are then refused. `None` sends
    /// in clear. Default: [`Encryption::default`].
    pub encryption: Option<Encryption>,
    /// Handling of packets with a wrong CRC32c. Default: drop them.
    pub checksum: Checksum,
    /// Bytes to request from the operating system for each socket's buffers, per direction. The
    /// operating system may grant less (Linux: `net.core.rmem_max` and `wmem_max`, unless the
    /// process is privileged). Default: `None`, twice [`Config::receive_buffer`], but at least 4
    /// MiB: a full window must fit even while this side is busy, and some systems count up to twice
    /// a datagram's bytes. At most 16 MiB with a receive buffer that grows.
    pub socket_buffer: Option<usize>,
    /// Shared keys that authenticate chunks ([`Config::authentication`]). Default: none; an
    /// attacker who has seen the handshake could then forge authenticated chunks.
    pub auth_keys: AuthKeys,
    /// How much paths from these local addresses are preferred, such as
    /// [`Preference::metered`] for those of a mobile network. Default: all alike.
    pub preferences: Vec<(IpAddr, Preference)>,
    /// Whether to follow the host's addresses: bind addresses that the host gains and stop using
    /// those that it loses, as the operating system reports them (`SCTP_AUTO_ASCONF` of RFC 6458
    /// 8.1.23), except loopback and link-local ones. [`Config::dynamic_addresses`] describes the
    /// effect on associations. Default: no.
    pub follow_addresses: bool,
    /// The addresses of the host that an endpoint bound to an unspecified address lists to its
    /// peers when an association begins (RFC 9260 5.1.2).
    pub announce: Announce,
    /// Network in which the sockets are bound. Default: `None`, the operating system's. Others have
    /// UDP only, and their addresses are not followed; they come with [`routes`](Self::routes) of
    /// their own.
    pub network: Option<Arc<dyn Network>>,
    /// UDP sockets to use together with other endpoints of this process, which have other SCTP
    /// ports or other addresses; not with encryption. With raw IP and with UDP port 0, it has no
    /// effect. Default: `None`, the UDP port belongs to this endpoint.
    pub shared: Option<SharedSockets>,
    /// Source of verification tags, initial TSNs and cookie secrets. Default: `None`, the operating
    /// system's randomness. Set it only in tests.
    pub seed: Option<Seed>,
}

/// The addresses of the host that an endpoint bound to an unspecified address (`0.0.0.0`, `::`)
/// lists to its peers, and that its paths begin at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Announce {
    /// None: the peer learns the addresses that it receives packets from. Paths begin where the
    /// routes choose.
    None,
    /// The addresses that can be of use to the peer, so that the association has a path over each
    /// network without configuration: those whose scope includes the peer's address, one of each
    /// interface, without loopback ones, and without those of bridges that only programs on this
    /// host are behind. At most 16. Each gets a path if its interface has a route to the peer, even
    /// if the host's routes prefer another interface. Only an endpoint that listens lists them: a
    /// peer that accepts an association learns the opener's from HEARTBEATs, as a NAT translates
    /// them. A peer on the loopback interface learns of none, and an endpoint that [follows the
    /// host's addresses](EndpointOptions::follow_addresses) lists none. The default.
    #[default]
    Useful,
    /// Every address whose scope includes the peer's, loopback ones included, as SCTP in Linux
    /// does. At most 16. Paths begin where the routes choose.
    All,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            addresses: vec![IpAddr::from([0, 0, 0, 0])],
            port: 0,
            encapsulation: Encapsulation::Udp { port: 0 },
            listen: false,
            max_associations: 1024,
            config: Config::default(),
            routes: Arc::new(SystemRoutes),
            encryption: Some(Encryption::default()),
            checksum: Checksum::Verify,
            socket_buffer: None,
            auth_keys: AuthKeys::default(),
            preferences: Vec::new(),
            follow_addresses: false,
            announce: Announce::default(),
            network: None,
            shared: None,
            seed: None,
        }
    }
}

impl EndpointOptions {
    /// The defaults, without encryption.
    #[must_use]
    pub fn plain() -> Self {
        Self { encryption: None, ..Self::default() }
    }

    /// The size of [`socket_buffer`](Self::socket_buffer) with its default applied.
    pub(crate) fn socket_bytes(&self) -> usize {
        const LEAST: usize = 4 << 20;
        const MOST_IF_TUNED: usize = 16 << 20;
        let grows = self.config.initial_receive_buffer().is_some();
        let most = if grows { MOST_IF_TUNED } else { usize::MAX };
        let window = self.config.receive_buffer() as usize;
        self.socket_buffer.unwrap_or_else(|| (2 * window).clamp(LEAST, most))
    }
}

/// The peer to connect to, and options of the association.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// SCTP port of the peer.
    pub port: u16,
    /// Addresses of the peer with their UDP encapsulation ports (ignored on raw IP), the primary
    /// one first; each with the local address of the endpoint to reach it from, or `None` to choose
    /// by route. The peer may announce more addresses.
    pub remotes: Vec<(SocketAddr, Option<IpAddr>)>,
    /// Constants and policies of this association. Default: those of the endpoint.
    pub config: Option<Config>,
}

impl ConnectOptions {
    /// Connects to SCTP port `port` of a peer that has these addresses, the primary one first.
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
            let config = Config::rfc9260().to_builder().receive_buffer(receive_buffer);
            let config = config.build().unwrap();
            EndpointOptions { config, socket_buffer, ..EndpointOptions::default() }.socket_bytes()
        };
        assert_eq!([with(1 << 20, None), with(8 << 20, None)], [4 << 20, 16 << 20]);
        assert_eq!(with(8 << 20, Some(4096)), 4096, "as was asked for");
        assert_eq!(with(32 << 20, None), 64 << 20);
        assert_eq!(EndpointOptions::default().socket_bytes(), 16 << 20, "it may grow to 256 MiB");
    }
}
