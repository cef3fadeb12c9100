//! What the two sides have agreed on in the handshake (RFC 9260 5.1).

use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::extension::{Extension, Extensions};
use crate::ids::{Tsn, VerificationTag};
use crate::rng::hmac;
use crate::shared::Shared;

/// The identity of an association, and the agreement of its two sides.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) local_tag: VerificationTag,
    /// 0 until the peer's INIT or INIT ACK has arrived.
    pub(crate) peer_tag: VerificationTag,
    pub(crate) peer_port: u16,
    pub(crate) local_initial_tsn: Tsn,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    /// Round-trip time of the cookie.
    pub(crate) round_trip: Option<Duration>,
    /// This side has sent an INIT, with all its offers.
    pub(crate) opened_here: bool,
    /// The INIT that this side has sent last offers no extensions.
    pub(crate) plain: bool,
    /// The tag of the INITs of the other kind, once there are any.
    other_tag: Option<VerificationTag>,
    /// The peer has opened the association and listed no addresses.
    pub(crate) peer_lists_none: bool,
    /// Extensions beyond RFC 9260 that both sides offered.
    pub(crate) extensions: Extensions,
    /// Adaptation code point in the peer's INIT or INIT ACK.
    pub(crate) peer_adaptation_layer: Option<u32>,
    /// The endpoint's new addresses, if they have changed during the handshake.
    pub(crate) shared_later: Option<Arc<Shared>>,
    key: [u8; 32],
}

impl Handshake {
    /// `key` makes the tie tags.
    pub(crate) fn new(
        config: &Config,
        (local_tag, local_initial_tsn): (VerificationTag, Tsn),
        peer_port: u16,
        key: [u8; 32],
    ) -> Self {
        Self {
            local_tag,
            peer_tag: VerificationTag(0),
            peer_port,
            local_initial_tsn,
            outbound_streams: config.outbound_streams(),
            inbound_streams: config.inbound_streams(),
            round_trip: None,
            opened_here: false,
            plain: false,
            other_tag: None,
            peer_lists_none: false,
            extensions: Extensions::default(),
            peer_adaptation_layer: None,
            shared_later: None,
            key,
        }
    }

    pub(crate) const fn has(&self, extension: Extension) -> bool {
        self.extensions.contains(extension)
    }

    /// Offers extensions from the next INIT on, or no longer.
    ///
    /// An INIT ACK does not show which INIT it answers, and may list extensions that the INIT did
    /// not offer. INITs without offers are another attempt to open the association, with a tag of
    /// its own: only an INIT ACK for the last kind of INIT is accepted.
    pub(crate) fn offer(&mut self, plain: bool) {
        if self.plain != plain {
            self.plain = plain;
            let before = self.local_tag;
            self.local_tag = self.other_tag.unwrap_or_else(|| {
                let mac = hmac(&self.key, &[b"plain INIT", &before.0.to_be_bytes()]);
                VerificationTag(u32::from_be_bytes([mac[0], mac[1], mac[2], mac[3]]).max(1))
            });
            self.other_tag = Some(before);
        }
    }

    /// Tie tags for a state cookie. RFC 9260 5.2.2: they are "populated with a random value",
    /// because any receiver of the cookie can read it (RFC 5062 3.3).
    pub(crate) fn tie_tags(&self) -> (VerificationTag, VerificationTag) {
        let tags = [self.local_tag.0.to_be_bytes(), self.peer_tag.0.to_be_bytes()].concat();
        let mac = hmac(&self.key, &[b"tie tags", &tags]);
        let word = |at: usize| u32::from_be_bytes([mac[at], mac[at + 1], mac[at + 2], mac[at + 3]]);
        // 0 means no association.
        (VerificationTag(word(0) | 1), VerificationTag(word(4) | 1))
    }
}
