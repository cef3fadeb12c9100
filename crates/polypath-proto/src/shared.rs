//! What an endpoint is made from, and what its associations share with it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::wire::{Checksum, CommonHeader};
use crate::{AuthKeys, Config, PrefixRoutes, RouteTable};

/// How SCTP packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// In UDP datagrams (RFC 6951).
    Udp {
        /// This side's UDP port.
        port: u16,
    },
    /// Directly in IP, as protocol 132.
    RawIp,
}

/// What an endpoint is made from.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// SCTP port.
    pub port: u16,
    /// Local addresses; an unspecified one leaves the choice to the operating system.
    pub addresses: Vec<IpAddr>,
    /// Where the endpoint is bound to an unspecified address: those that the host has, if they are followed.
    pub host_addresses: Option<Vec<IpAddr>>,
    /// How packets travel.
    pub encapsulation: Encapsulation,
    /// Associations may be opened by peers.
    pub listen: bool,
    /// Most associations at a time; more are refused.
    pub max_associations: usize,
    /// Constants and policies of associations that peers open, and the default for our own.
    pub association: Config,
    /// Pairs local with remote addresses.
    pub routes: Arc<dyn RouteTable>,
    /// The layer below finds errors as CRC32c does, as DTLS (RFC 8261): packets without checksum are taken,
    /// and sent to who takes them (RFC 9653).
    pub zero_checksum: bool,
    /// Secrets that both sides of an association have, to authenticate chunks (RFC 4895 6.1). Where there is
    /// but the empty one, who has seen the handshake can make chunks that pass.
    pub auth_keys: AuthKeys,
    /// Bytes that the layer below adds to each packet, besides IP and UDP.
    pub overhead: usize,
    /// Whether packets carry and need a CRC32c; without it only where nothing damages them.
    pub checksum: Checksum,
}

impl EndpointConfig {
    /// An endpoint that does not listen, with the `rfc9260` profile.
    pub fn new(port: u16, addresses: Vec<IpAddr>, encapsulation: Encapsulation) -> Self {
        Self {
            port,
            addresses,
            host_addresses: None,
            encapsulation,
            listen: false,
            max_associations: 4096,
            association: Config::rfc9260(),
            routes: Arc::new(PrefixRoutes),
            zero_checksum: false,
            auth_keys: AuthKeys::default(),
            overhead: 0,
            checksum: Checksum::Verify,
        }
    }
}

/// An address of a peer to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// IP address and UDP encapsulation port (0 on raw IP).
    pub address: SocketAddr,
    /// The local address to reach it from; `None` leaves it to the route table.
    pub local: Option<IpAddr>,
}

/// What the network reported about a datagram of ours (ICMP; RFC 9260 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreachable {
    /// Nothing listens on the UDP port.
    Port,
    /// The host does not know protocol 132.
    Protocol,
    /// The host does not answer.
    Host,
    /// There is no route.
    Network,
    /// The datagram was larger than a link of the path takes.
    TooBig {
        /// What the link takes, in bytes.
        mtu: u16,
        /// The header of the SCTP packet that the message shows; none if this host itself says so. A
        /// message that shows nothing is nobody's.
        shown: Option<CommonHeader>,
    },
}

/// What an endpoint and its associations have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EndpointConfig,
    pub(crate) cookie_key: [u8; 32],
}
