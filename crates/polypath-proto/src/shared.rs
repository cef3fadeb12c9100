//! What an endpoint is made from, and what its associations share with it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::wire::{CHUNK_HEADER_LEN, COMMON_HEADER_LEN, Checksum, CommonHeader, chunk_type};
use crate::{AuthKeys, Config, PrefixRoutes, RouteTable, VerificationTag};

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
    },
}

/// The beginning of an SCTP packet, as an ICMP message quotes it. It shows that the message comes
/// from somebody who has seen the packet (RFC 9260 10, ICMP6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The common header, without the checksum.
    pub header: CommonHeader,
    /// The Initiate Tag, if the first chunk is an INIT.
    pub init: Option<VerificationTag>,
}

impl Quoted {
    /// Reads the beginning of a packet; `None` if it has fewer than 8 bytes.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = CommonHeader::peek(bytes)?;
        // RFC 9260 3.3.2: the Initiate Tag follows the header of the chunk.
        let init = (bytes.get(COMMON_HEADER_LEN) == Some(&chunk_type::INIT))
            .then(|| bytes.get(COMMON_HEADER_LEN + CHUNK_HEADER_LEN..)?.first_chunk().copied())
            .flatten();
        Some(Self { header, init: init.map(|tag| VerificationTag(u32::from_be_bytes(tag))) })
    }
}

/// What an endpoint and its associations have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EndpointConfig,
    /// Gives the keys of state cookies (RFC 9260 5.1.3), and the Random parameters (RFC 4895 6.1).
    pub(crate) secret: [u8; 32],
}
