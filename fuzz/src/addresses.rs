//! A conversation about addresses (RFC 5061), authenticated (RFC 4895) or not: ASCONF, ASCONF-ACK,
//! AUTH and HEARTBEAT chunks, while addresses of the endpoint's host are added and removed and data
//! is in flight.

use polypath_proto::wire::chunk_type;

use super::Input;
use super::conversation::{Conversation, Outcome};
use super::offers::Offers;

/// Types of the peer's chunks; types listed several times are sent more often.
const KINDS: [u8; 16] = [
    chunk_type::ASCONF,
    chunk_type::ASCONF_ACK,
    chunk_type::AUTH,
    chunk_type::HEARTBEAT,
    chunk_type::HEARTBEAT_ACK,
    chunk_type::DATA,
    chunk_type::SACK,
    chunk_type::ASCONF,
    chunk_type::RE_CONFIG,
    chunk_type::FORWARD_TSN,
    chunk_type::ERROR,
    chunk_type::ASCONF,
    chunk_type::SHUTDOWN,
    chunk_type::PAD,
    chunk_type::INIT,
    chunk_type::COOKIE_ECHO,
];

/// Runs the conversation that the input encodes.
pub fn converse(bytes: &[u8]) -> Outcome {
    let mut input = Input(bytes);
    let (ours, theirs) = (input.word(), input.word());
    // Both sides support dynamic addresses; both authenticate, or neither.
    let ours = Offers(ours | Offers::ADDRESSES);
    let authenticated = ours.0 & Offers::AUTHENTICATION;
    let theirs = Offers(theirs & !Offers::AUTHENTICATION | Offers::ADDRESSES | authenticated);
    Conversation::tell(ours, theirs, &KINDS, input)
}
