//! Chunk authentication (RFC 4895): which chunks need it, the keys, and the handling of
//! unauthenticated chunks.

use crate::auth::{AuthKeys, AuthOffer, Authentication, ChunkTypes, Distrust, KeyError};
use crate::config::Config;
use crate::cookie::StateCookie;
use crate::handshake::Handshake;
use crate::ids::PathId;
use crate::outbox::{Control, Outbox, OwnedCause};
use crate::shared::Shared;
use crate::stats::AssociationStats;
use crate::time::Time;
use crate::wire::{Auth, Chunk, Packet, chunk_type};

/// The keys of an association.
#[derive(Debug)]
pub(super) struct Keys {
    /// The endpoint pair shared keys (RFC 4895 6.1).
    shared: AuthKeys,
    /// The keys derived from them, if both sides have agreed on authentication.
    derived: Option<Box<Authentication>>,
    /// Number of the key that the peer has used last.
    of_peer: u16,
}

impl Keys {
    pub(super) const fn new(shared: AuthKeys) -> Self {
        let of_peer = shared.active();
        Self { shared, derived: None, of_peer }
    }

    /// Whether both sides have agreed on authentication.
    pub(super) const fn are_agreed(&self) -> bool {
        self.derived.is_some()
    }

    /// The endpoint pair shared keys.
    pub(super) const fn shared(&self) -> &AuthKeys {
        &self.shared
    }

    /// Changes the endpoint pair shared keys; `change` fails without an effect.
    pub(super) fn change(
        &mut self,
        change: impl FnOnce(&mut AuthKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        let mut keys = self.shared.clone();
        change(&mut keys)?;
        if let Some(auth) = &mut self.derived {
            auth.set_keys(&keys);
        }
        self.shared = keys;
        Ok(())
    }

    /// Chunk types that the peer accepts only authenticated.
    pub(super) fn peer_chunks(&self) -> Option<ChunkTypes> {
        let auth = self.derived.as_ref()?;
        let listed: Vec<u8> = (0..=u8::MAX).filter(|ty| auth.wants(*ty)).collect();
        Some(ChunkTypes::authenticated(&listed))
    }

    /// Derives the keys from both sides' parameters; `theirs` is `None` unless both have agreed on
    /// authentication.
    pub(super) fn derive(&mut self, ours: &AuthOffer, theirs: Option<&AuthOffer>) {
        self.derived =
            theirs.map(|theirs| Box::new(Authentication::new(ours, theirs, &self.shared)));
    }

    /// Bytes that every packet with DATA needs for an AUTH chunk.
    pub(super) fn overhead(&self) -> usize {
        let auth = self.derived.as_ref().filter(|auth| auth.wants_more());
        auth.map_or(0, |auth| auth.chunk_len())
    }

    /// Bytes to keep free for an AUTH chunk in the next packet, whose first control chunk is
    /// `front`; `alone` if the packet is sent for that chunk.
    pub(super) fn room(&self, front: Option<&Control>, alone: bool) -> usize {
        let Some(auth) = &self.derived else { return 0 };
        let wanted = match front {
            // The packet's size is fixed: reserve room only if its own chunks need it.
            Some(Control::MtuProbe(size, _)) => {
                auth.is_demanded(chunk_type::HEARTBEAT)
                    || (size.is_some() && auth.is_demanded(chunk_type::PAD))
            }
            Some(Control::Asconf(_)) if alone => true,
            Some(Control::CookieEcho) if auth.is_demanded(chunk_type::COOKIE_ECHO) => true,
            _ => auth.wants_more(),
        };
        if wanted { auth.chunk_len() } else { 0 }
    }

    /// Adds the AUTH chunk to a packet of `len` bytes; returns the new length.
    pub(super) fn authenticate(&self, buf: &mut [u8], len: usize) -> usize {
        self.derived.as_ref().map_or(len, |auth| auth.authenticate(buf, len))
    }

    /// Whether this side accepts such a chunk only authenticated.
    pub(super) fn demand(&self, ty: u8) -> bool {
        self.derived.as_ref().is_some_and(|auth| auth.demands(ty))
    }

    /// Notes the key of an AUTH chunk that was verified; true if the peer used another one before.
    pub(super) fn note_key(&mut self, key: u16) -> bool {
        std::mem::replace(&mut self.of_peer, key) != key
    }

    /// Whether the chunks after an AUTH chunk are to be processed; `rest` is the packet from the
    /// AUTH chunk on. An unsupported HMAC is reported on `path`.
    pub(super) fn verify(
        &self,
        path: Option<PathId>,
        auth: &Auth<'_>,
        rest: &[u8],
        outbox: &mut Outbox,
        stats: &mut AssociationStats,
    ) -> bool {
        // Without keys this is an unknown chunk, at which processing stops (RFC 9260 3.2).
        let Some(keys) = &self.derived else { return false };
        match keys.verify(auth, rest) {
            Ok(()) => return true,
            Err(Distrust::Wrong) => {}
            Err(Distrust::UnsupportedHmac(id)) => {
                if let Some(path) = path {
                    outbox.push_once(path, Control::Error(OwnedCause::UnsupportedHmac(id)));
                }
            }
        }
        stats.bad_auth += 1;
        false
    }

    /// Whether the packet's second chunk is a COOKIE ECHO while there are no keys yet: both sides
    /// have opened the association at once.
    pub(super) fn await_cookie_behind(&self, packet: &Packet<'_>) -> bool {
        self.derived.is_none() && matches!(packet.chunks().nth(1), Some(Ok(Chunk::CookieEcho(_))))
    }

    /// Whether a COOKIE ECHO of the peer, the first chunk of a packet or after an AUTH chunk, is
    /// authenticated as required (RFC 4895 6.3). If the association has no keys yet, they are
    /// derived from the cookie.
    #[inline(never)]
    pub(super) fn accept_cookie_echo(
        &self,
        now: Time,
        packet: &Packet<'_>,
        config: &Config,
        secret: &[u8; 32],
    ) -> bool {
        if let Some(auth) = &self.derived {
            return trusts(auth, packet);
        }
        let verify = |bytes| StateCookie::verify(bytes, secret, config, now);
        match cookie_of(packet).map(verify) {
            Some(Ok(cookie)) => authenticates_cookie(&cookie, config, secret, &self.shared, packet),
            // An invalid cookie is rejected later.
            _ => true,
        }
    }
}

/// Authentication parameters in this side's INIT or INIT ACK.
pub(super) fn offer(config: &Config, shared: &Shared, handshake: &Handshake) -> AuthOffer {
    let (tag, tsn) = (handshake.local_tag, handshake.local_initial_tsn);
    AuthOffer::ours(config.demanded_chunks(), &shared.secret, tag, tsn)
}

/// The cookie of a COOKIE ECHO at the head of a packet, after an AUTH chunk or not.
fn cookie_of<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    packet.chunks().take(2).find_map(|chunk| match chunk {
        Ok(Chunk::CookieEcho(echo)) => Some(echo.cookie),
        _ => None,
    })
}

fn trusts(auth: &Authentication, packet: &Packet<'_>) -> bool {
    let rest = packet.chunks().as_bytes();
    match packet.chunks().next() {
        Some(Ok(Chunk::Auth(chunk))) => auth.verify(&chunk, rest).is_ok(),
        _ => !auth.demands(chunk_type::COOKIE_ECHO),
    }
}

/// Like `trusts`, for a peer without an association. A COOKIE ECHO that must be authenticated and
/// is not is rejected.
pub(crate) fn authenticates_cookie(
    cookie: &StateCookie,
    config: &Config,
    secret: &[u8],
    keys: &AuthKeys,
    packet: &Packet<'_>,
) -> bool {
    let Some(theirs) = &cookie.authentication else {
        let authenticated = matches!(packet.chunks().next(), Some(Ok(Chunk::Auth(_))));
        let demanded =
            config.authentication() && config.demanded_chunks().contains(chunk_type::COOKIE_ECHO);
        return !authenticated && !demanded;
    };
    let demands = config.demanded_chunks();
    let ours = AuthOffer::ours(demands, secret, cookie.local_tag, cookie.local_initial_tsn);
    trusts(&Authentication::new(&ours, theirs, keys), packet)
}
