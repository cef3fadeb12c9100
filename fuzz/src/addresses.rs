//! A conversation about addresses (RFC 5061), authenticated (RFC 4895) or not: ASCONF, ASCONF-ACK, AUTH and HEARTBEAT
//! chunks, while addresses of the endpoint's host come and go and data is on its way.

use polypath_proto::wire::chunk_type;

use super::Input;
use super::conversation::{Conversation, Outcome};
use super::offers::Offers;

/// What the peer says most.
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

/// Has the conversation that the input tells.
pub fn converse(bytes: &[u8]) -> Outcome {
    let mut input = Input(bytes);
    let (ours, theirs) = (input.word(), input.word());
    // Both have it; both authenticate it, or neither.
    let ours = Offers(ours | Offers::ADDRESSES);
    let authenticated = ours.0 & Offers::AUTHENTICATION;
    let theirs = Offers(theirs & !Offers::AUTHENTICATION | Offers::ADDRESSES | authenticated);
    Conversation::tell(ours, theirs, &KINDS, input)
}
