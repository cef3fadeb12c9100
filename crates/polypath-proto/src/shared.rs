//! The configuration of an endpoint, and the data that it shares with its associations.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::auth::AuthKeys;
use crate::config::Config;
use crate::ids::VerificationTag;
use crate::pool::Pool;
use crate::preference::Preference;
use crate::routes::{PrefixRoutes, RouteTable};
use crate::wire::{CHUNK_HEADER_LEN, COMMON_HEADER_LEN, Checksum, CommonHeader, chunk_type};

/// How SCTP packets are transported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// In UDP datagrams (RFC 6951).
    Udp {
        /// Local UDP port.
        port: u16,
    },
    /// Directly in IP, as protocol 132.
    RawIp,
}

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// SCTP port.
    pub port: u16,
    /// Local addresses; an unspecified address leaves the choice to the operating system.
    pub addresses: Vec<IpAddr>,
    /// The host's addresses, if the endpoint is bound to an unspecified address and the driver
    /// follows address changes.
    pub host_addresses: Option<Vec<IpAddr>>,
    /// Addresses to list to peers instead of [`addresses`](Self::addresses), for an endpoint bound
    /// to an unspecified address: those of them whose scope includes the peer, up to 16; to a peer
    /// on the loopback interface only if there is a loopback address among them. `None` lists none.
    pub announced: Option<Vec<IpAddr>>,
    /// Local addresses that paths of associations opened here may begin at, for an endpoint bound
    /// to an unspecified address ([`RouteTable::all_for`]); those that peers open begin at
    /// [`announced`](Self::announced) ones. Peers learn them from HEARTBEATs.
    pub sources: Vec<IpAddr>,
    /// How packets are transported.
    pub encapsulation: Encapsulation,
    /// Whether peers may open associations.
    pub listen: bool,
    /// Maximum number of associations; further ones are refused.
    pub max_associations: usize,
    /// Constants and policies of associations that peers open, and the default for local ones.
    pub association: Config,
    /// Pairs local addresses with remote addresses.
    pub routes: Arc<dyn RouteTable>,
    /// The layer below detects errors as well as CRC32c does, e.g. DTLS (RFC 8261): packets without
    /// a checksum are accepted, and sent to peers that accept them (RFC 9653).
    pub zero_checksum: bool,
    /// Endpoint pair shared keys for authenticating chunks (RFC 4895 6.1). With only the empty key,
    /// an attacker who has observed the handshake can forge authenticated chunks.
    pub auth_keys: AuthKeys,
    /// How much paths from these local addresses are preferred; others are normal.
    pub preferences: Vec<(IpAddr, Preference)>,
    /// Bytes that the layer below adds to each packet, apart from IP and UDP.
    pub overhead: usize,
    /// Whether packets carry and require a CRC32c; turn it off only if no packet can be corrupted.
    pub checksum: Checksum,
}

impl EndpointConfig {
    /// An endpoint that does not listen, with the default profile.
    pub fn new(port: u16, addresses: Vec<IpAddr>, encapsulation: Encapsulation) -> Self {
        Self {
            port,
            addresses,
            host_addresses: None,
            announced: None,
            sources: Vec::new(),
            encapsulation,
            listen: false,
            max_associations: 4096,
            association: Config::default(),
            routes: Arc::new(PrefixRoutes),
            zero_checksum: false,
            auth_keys: AuthKeys::default(),
            preferences: Vec::new(),
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
    /// The local address to use; `None` leaves it to the route table.
    pub local: Option<IpAddr>,
}

/// Error that the network reported for a sent datagram (ICMP; RFC 9260 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreachable {
    /// Nothing listens on the UDP port.
    Port,
    /// The host does not support protocol 132.
    Protocol,
    /// The host does not respond.
    Host,
    /// There is no route.
    Network,
    /// The datagram exceeded the MTU of a link on the path.
    TooBig {
        /// The MTU of the link, in bytes.
        mtu: u16,
    },
}

/// The start of an SCTP packet as quoted by an ICMP message. It shows that the sender of the
/// message has seen the packet (RFC 9260 10, ICMP6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The common header, without the checksum.
    pub header: CommonHeader,
    /// The Initiate Tag, if the first chunk is an INIT.
    pub init: Option<VerificationTag>,
}

impl Quoted {
    /// Parses the start of a packet; `None` if it has fewer than 8 bytes.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = CommonHeader::peek(bytes)?;
        // RFC 9260 3.3.2: the Initiate Tag follows the chunk header.
        let init = (bytes.get(COMMON_HEADER_LEN) == Some(&chunk_type::INIT))
            .then(|| bytes.get(COMMON_HEADER_LEN + CHUNK_HEADER_LEN..)?.first_chunk().copied())
            .flatten();
        Some(Self { header, init: init.map(|tag| VerificationTag(u32::from_be_bytes(tag))) })
    }
}

/// Data shared by an endpoint and its associations.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) config: EndpointConfig,
    /// Derives the keys of state cookies (RFC 9260 5.1.3) and the Random parameters (RFC 4895 6.1).
    pub(crate) secret: [u8; 32],
    /// The memory by which the buffers of all associations may grow.
    pub(crate) pool: Arc<Pool>,
}

impl Shared {
    /// Whether the host has this local address, according to the endpoint's configuration.
    pub(crate) fn has_address(&self, local: IpAddr) -> bool {
        match &self.config.host_addresses {
            Some(present) => local.is_loopback() || present.contains(&local),
            None => self.config.addresses.iter().any(|ip| ip.is_unspecified() || *ip == local),
        }
    }
}
