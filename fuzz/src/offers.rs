//! The offers of both sides: the endpoint's configuration, and the parameters of the peer's INIT.

use polypath_proto::policy::{ack, rtt_sampling, scheduler};
use polypath_proto::wire::{
    Checksum, DoesNotFit, ParameterWriter, chunk_type, hmac_id, parameter_type,
};
use polypath_proto::{ChunkTypes, Config, Encapsulation, EndpointConfig};

use super::packets::{OURS, PORT, THEIRS, ip};

/// Maximum number of paths of the endpoint's associations.
pub const MOST_PATHS: u8 = 5;

/// Extensions that a side offers, one bit each. Some bits configure the endpoint, or select the
/// addresses that the peer lists.
#[derive(Clone, Copy)]
pub struct Offers(pub u16);

impl Offers {
    pub const INTERLEAVING: u16 = 1;
    pub const PARTIAL_RELIABILITY: u16 = 2;
    pub const RECONFIGURATION: u16 = 4;
    pub const ECN: u16 = 8;
    /// The endpoint discovers the path MTU.
    pub const PATH_MTU: u16 = 16;
    /// The endpoint's receive buffer is small.
    pub const SMALL: u16 = 32;
    pub const NR_SACK: u16 = 64;
    pub const TIMESTAMPS: u16 = 128;
    pub const RETRANSMISSION_FLAG: u16 = 256;
    /// Delayed acknowledgements for CMT; the endpoint uses all paths at once.
    pub const PACKET_COUNT: u16 = 512;
    pub const ZERO_CHECKSUM: u16 = 1024;
    pub const AUTHENTICATION: u16 = 2048;
    /// The endpoint accepts chunks only if they are authenticated, except for types that cannot be.
    pub const DEMANDS: u16 = 4096;
    pub const ADDRESSES: u16 = 8192;
    /// The peer lists both of its addresses.
    pub const LISTED: u16 = 16_384;
    /// The endpoint verifies the checksums of packets.
    pub const CHECKS: u16 = 32_768;

    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }

    pub fn config(self) -> EndpointConfig {
        // All bits are taken: half of their combinations are for each of two profiles.
        let standard = self.0.count_ones() % 2 == 1;
        let profile = if standard { Config::rfc9260() } else { Config::modern() };
        let mut config = profile
            .to_builder()
            .interleaving(self.has(Self::INTERLEAVING))
            .partial_reliability(self.has(Self::PARTIAL_RELIABILITY))
            .stream_reconfiguration(self.has(Self::RECONFIGURATION))
            .ecn(self.has(Self::ECN))
            .path_mtu_discovery(self.has(Self::PATH_MTU))
            .nr_sack(self.has(Self::NR_SACK))
            .authentication(self.has(Self::AUTHENTICATION))
            .dynamic_addresses(self.has(Self::ADDRESSES))
            .adaptation_layer(self.has(Self::ADDRESSES).then_some(7))
            .unauthenticated_addresses(!self.has(Self::AUTHENTICATION))
            .max_paths(MOST_PATHS)
            .receive_buffer(if self.has(Self::SMALL) { 3_000 } else { 20_000 })
            .send_buffer(20_000)
            .inbound_streams(8)
            .outbound_streams(8);
        if self.has(Self::TIMESTAMPS) {
            config = config.rtt_sampling(&rtt_sampling::TIMESTAMPS);
        } else if self.has(Self::RETRANSMISSION_FLAG) {
            config = config.rtt_sampling(&rtt_sampling::RETRANSMISSION_FLAG);
        }
        if self.has(Self::PACKET_COUNT) {
            config = config.ack(&ack::DELAYED_CMT).scheduler(&scheduler::CONCURRENT);
        }
        if self.has(Self::DEMANDS) {
            let all: Vec<u8> = (0..=u8::MAX).collect();
            config = config.authenticated_chunks(ChunkTypes::authenticated(&all));
        }
        EndpointConfig {
            listen: true,
            association: config.build().expect("a sound configuration"),
            zero_checksum: self.has(Self::ZERO_CHECKSUM),
            checksum: if self.has(Self::CHECKS) { Checksum::Verify } else { Checksum::Ignore },
            ..EndpointConfig::new(PORT, THEIRS.map(ip).to_vec(), Encapsulation::RawIp)
        }
    }

    /// Writes the parameters of the peer's INIT.
    pub fn write(self, p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        let types = [
            (Self::INTERLEAVING, chunk_type::I_DATA),
            (Self::PARTIAL_RELIABILITY, chunk_type::FORWARD_TSN),
            (Self::INTERLEAVING | Self::PARTIAL_RELIABILITY, chunk_type::I_FORWARD_TSN),
            (Self::RECONFIGURATION, chunk_type::RE_CONFIG),
            (Self::NR_SACK, chunk_type::NR_SACK),
            (Self::AUTHENTICATION, chunk_type::AUTH),
            (Self::ADDRESSES, chunk_type::ASCONF),
            (Self::ADDRESSES, chunk_type::ASCONF_ACK),
        ];
        let types: Vec<u8> =
            types.iter().filter(|(bits, _)| self.has(*bits)).map(|t| t.1).collect();
        p.supported_extensions(&types)?;
        if self.has(Self::LISTED) {
            OURS.into_iter().try_for_each(|last| p.address(ip(last)))?;
        }
        if self.has(Self::ECN) {
            p.ecn_capable()?;
        }
        if self.has(Self::TIMESTAMPS) {
            p.timestamps()?;
        }
        if self.has(Self::RETRANSMISSION_FLAG) {
            p.retransmission_flag()?;
        }
        if self.has(Self::PACKET_COUNT) {
            p.packet_count()?;
        }
        if self.has(Self::ZERO_CHECKSUM) {
            // RFC 9653 7.2: SCTP over DTLS.
            p.zero_checksum_acceptable(1)?;
        }
        if self.has(Self::AUTHENTICATION) {
            p.random(&RANDOM)?;
            p.chunk_list(&ASKED)?;
            p.hmac_algorithms(&HMACS)?;
        }
        Ok(())
    }
}

/// The peer's parameters for authentication (RFC 4895 3).
const RANDOM: [u8; 32] = [7; 32];
const ASKED: [u8; 2] = [chunk_type::ASCONF, chunk_type::ASCONF_ACK];
const HMACS: [u16; 2] = [hmac_id::SHA_256, hmac_id::SHA_1];

/// The association's key, made from these and the endpoint's parameters without a shared secret:
/// the smaller vector first (RFC 4895 6.1).
pub fn key(random: &[u8], asked: Option<&[u8]>, hmacs: &[u16]) -> Vec<u8> {
    let mut vectors = [key_vector(&RANDOM, Some(&ASKED), &HMACS), key_vector(random, asked, hmacs)];
    vectors.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    vectors.concat()
}

/// The parameters one after the other, without padding.
fn key_vector(random: &[u8], asked: Option<&[u8]>, hmacs: &[u16]) -> Vec<u8> {
    let hmacs: Vec<u8> = hmacs.iter().flat_map(|id| id.to_be_bytes()).collect();
    let mut vector = Vec::new();
    for (ty, value) in [
        (parameter_type::RANDOM, Some(random)),
        (parameter_type::CHUNK_LIST, asked),
        (parameter_type::HMAC_ALGORITHMS, Some(&hmacs)),
    ] {
        let Some(value) = value else { continue };
        vector.extend(ty.to_be_bytes());
        vector.extend((4 + value.len() as u16).to_be_bytes());
        vector.extend(value);
    }
    vector
}
