//! Chunk authentication (RFC 4895): which chunks need it, the keys, and the handling of
//! unauthenticated chunks.

use super::Association;
use super::transmit::Purpose;
use crate::auth::{AuthKeys, AuthOffer, Authentication, ChunkTypes, Distrust, KeyError};
use crate::config::Config;
use crate::cookie::StateCookie;
use crate::extension::Extension;
use crate::ids::PathId;
use crate::outbox::{Control, OwnedCause};
use crate::time::Time;
use crate::wire::{Auth, Chunk, Packet, chunk_type};

/// The keys of an association.
#[derive(Debug)]
pub(super) struct Keys {
    /// The endpoint pair shared keys (RFC 4895 6.1).
    shared: AuthKeys,
    /// The keys derived from them, if both sides have agreed on authentication.
    derived: Option<Box<Authentication>>,
}

impl Keys {
    pub(super) const fn new(shared: AuthKeys) -> Self {
        Self { shared, derived: None }
    }

    /// Whether both sides have agreed on authentication.
    pub(super) const fn are_agreed(&self) -> bool {
        self.derived.is_some()
    }
}

impl Association {
    /// The endpoint pair shared keys (RFC 4895 6.1).
    pub const fn auth_keys(&self) -> &AuthKeys {
        &self.auth.shared
    }

    /// Changes the endpoint pair shared keys (RFC 6458 8.1.20, 8.3.3, 8.3.4:
    /// `SCTP_AUTH_ACTIVE_KEY`, `SCTP_AUTH_KEY`, `SCTP_AUTH_DELETE_KEY`). The peer must have a key
    /// before this side uses it.
    ///
    /// # Errors
    ///
    /// The error that `change` returns; nothing is changed then.
    pub fn change_auth_keys(
        &mut self,
        change: impl FnOnce(&mut AuthKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        let mut keys = self.auth.shared.clone();
        change(&mut keys)?;
        if let Some(auth) = &mut self.auth.derived {
            auth.set_keys(&keys);
        }
        self.auth.shared = keys;
        Ok(())
    }

    /// Chunk types that this side accepts only authenticated (`SCTP_LOCAL_AUTH_CHUNKS`); `None` if
    /// the two sides have not agreed on authentication.
    pub fn local_auth_chunks(&self) -> Option<ChunkTypes> {
        self.auth.derived.as_ref().map(|_| self.config.demanded_chunks())
    }

    /// Chunk types that the peer accepts only authenticated (`SCTP_PEER_AUTH_CHUNKS`).
    pub fn peer_auth_chunks(&self) -> Option<ChunkTypes> {
        let auth = self.auth.derived.as_ref()?;
        let listed: Vec<u8> = (0..=u8::MAX).filter(|ty| auth.wants(*ty)).collect();
        Some(ChunkTypes::authenticated(&listed))
    }

    /// Authentication parameters in this side's INIT or INIT ACK.
    pub(super) fn auth_offer(&self) -> AuthOffer {
        let (demands, secret) = (self.config.demanded_chunks(), &self.shared.secret);
        AuthOffer::ours(demands, secret, self.handshake.local_tag, self.handshake.local_initial_tsn)
    }

    /// Derives the keys from both sides' parameters, if both have agreed on authentication.
    pub(super) fn start_authentication(&mut self, theirs: Option<&AuthOffer>) {
        let agreed = self.handshake.has(Extension::Authentication);
        self.auth.derived = theirs.filter(|_| agreed).map(|theirs| {
            Box::new(Authentication::new(&self.auth_offer(), theirs, &self.auth.shared))
        });
    }

    /// Bytes that every packet with DATA needs besides DATA.
    pub(super) fn overhead(&self) -> usize {
        let auth = self.auth.derived.as_ref().filter(|auth| auth.wants_more());
        self.handshake.extensions.overhead() + auth.map_or(0, |auth| auth.chunk_len())
    }

    /// Bytes to keep free for an AUTH chunk in the next packet.
    pub(super) fn auth_room(&self, purpose: Purpose) -> usize {
        let Some(auth) = &self.auth.derived else { return 0 };
        let wanted = match self.outbox.front() {
            // The packet's size is fixed: reserve room only if its own chunks need it.
            Some((_, Control::MtuProbe(size, _))) => {
                auth.is_demanded(chunk_type::HEARTBEAT)
                    || (size.is_some() && auth.is_demanded(chunk_type::PAD))
            }
            Some((_, Control::Asconf(_))) if purpose == Purpose::Control => true,
            Some((_, Control::CookieEcho)) if auth.is_demanded(chunk_type::COOKIE_ECHO) => true,
            _ => auth.wants_more(),
        };
        if wanted { auth.chunk_len() } else { 0 }
    }

    /// Adds the AUTH chunk to a packet of `len` bytes; returns the new length.
    pub(super) fn authenticate(&self, buf: &mut [u8], len: usize) -> usize {
        self.auth.derived.as_ref().map_or(len, |auth| auth.authenticate(buf, len))
    }

    /// Whether this side accepts such a chunk only authenticated.
    pub(super) fn demands_auth(&self, ty: u8) -> bool {
        self.auth.derived.as_ref().is_some_and(|auth| auth.demands(ty))
    }

    /// Whether the chunks after an AUTH chunk are to be processed; `rest` is the packet from the
    /// AUTH chunk on.
    pub(super) fn verify(&mut self, path: Option<PathId>, auth: &Auth<'_>, rest: &[u8]) -> bool {
        // Without keys this is an unknown chunk, at which processing stops (RFC 9260 3.2).
        let Some(keys) = &self.auth.derived else { return false };
        match keys.verify(auth, rest) {
            Ok(()) => return true,
            Err(Distrust::Wrong) => {}
            Err(Distrust::UnsupportedHmac(id)) => {
                if let Some(path) = path {
                    self.outbox.push_once(path, Control::Error(OwnedCause::UnsupportedHmac(id)));
                }
            }
        }
        self.stats.bad_auth += 1;
        false
    }

    /// Whether the packet's second chunk is a COOKIE ECHO while there are no keys yet: both sides
    /// have opened the association at once.
    pub(super) fn awaits_cookie_behind(&self, packet: &Packet<'_>) -> bool {
        self.auth.derived.is_none()
            && self.is_opening()
            && matches!(packet.chunks().nth(1), Some(Ok(Chunk::CookieEcho(_))))
    }

    /// Whether a COOKIE ECHO of the peer, the first chunk of a packet or after an AUTH chunk, is
    /// authenticated as required (RFC 4895 6.3). If the association has no keys yet, they are
    /// derived from the cookie.
    #[inline(never)]
    pub(crate) fn trusts_cookie_echo(&mut self, now: Time, packet: &Packet<'_>) -> bool {
        let trusted = if let Some(auth) = &self.auth.derived {
            trusts(auth, packet)
        } else {
            let secret = &self.shared.secret;
            let verify = |bytes| StateCookie::verify(bytes, secret, &self.config, now);
            match cookie_of(packet).map(verify) {
                Some(Ok(cookie)) => {
                    trusts_stranger(&cookie, &self.config, secret, &self.auth.shared, packet)
                }
                // An invalid cookie is rejected later.
                _ => true,
            }
        };
        self.stats.bad_auth += u64::from(!trusted);
        trusted
    }
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
pub(crate) fn trusts_stranger(
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
