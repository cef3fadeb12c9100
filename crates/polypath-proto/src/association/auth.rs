//! Chunks that are authenticated (RFC 4895): which, with what, and what becomes of those that are not.

use super::Association;
use super::control::{Control, OwnedCause};
use super::transmit::Purpose;
use crate::auth::{AuthKeys, AuthOffer, Authentication, ChunkTypes, Distrust, KeyError, demanded};
use crate::cookie::StateCookie;
use crate::wire::{Auth, Chunk, Packet, chunk_type};
use crate::{Extension, PathId, Time};

impl Association {
    /// The endpoint pair shared keys (RFC 4895 6.1).
    pub const fn auth_keys(&self) -> &AuthKeys {
        &self.auth_keys
    }

    /// Changes the endpoint pair shared keys (RFC 6458 8.1.20, 8.3.3, 8.3.4: `SCTP_AUTH_ACTIVE_KEY`,
    /// `SCTP_AUTH_KEY`, `SCTP_AUTH_DELETE_KEY`). The other side has to have a key before this one uses it.
    ///
    /// # Errors
    ///
    /// What `change` says; nothing was changed then.
    pub fn change_auth_keys(
        &mut self,
        change: impl FnOnce(&mut AuthKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        let mut keys = self.auth_keys.clone();
        change(&mut keys)?;
        if let Some(auth) = &mut self.auth {
            auth.set_keys(&keys);
        }
        self.auth_keys = keys;
        Ok(())
    }

    /// Chunk types that this side takes only authenticated (`SCTP_LOCAL_AUTH_CHUNKS`); `None` if the two
    /// sides have not agreed on that.
    pub fn local_auth_chunks(&self) -> Option<ChunkTypes> {
        self.auth.as_ref().map(|_| demanded(&self.config))
    }

    /// What the peer takes only authenticated (`SCTP_PEER_AUTH_CHUNKS`).
    pub fn peer_auth_chunks(&self) -> Option<ChunkTypes> {
        let auth = self.auth.as_ref()?;
        let listed: Vec<u8> = (0..=u8::MAX).filter(|ty| auth.wants(*ty)).collect();
        Some(ChunkTypes::authenticated(&listed))
    }

    /// What this side says in its INIT.
    pub(super) fn auth_offer(&self) -> AuthOffer {
        AuthOffer::ours(&self.config, &self.shared.secret, self.local_tag, self.local_initial_tsn)
    }

    /// Both sides' parameters are known, and what they have agreed on.
    pub(super) fn start_authentication(&mut self, theirs: Option<&AuthOffer>) {
        let agreed = self.extensions.contains(Extension::Authentication);
        self.auth = theirs.filter(|_| agreed).map(|theirs| {
            Box::new(Authentication::new(&self.auth_offer(), theirs, &self.auth_keys))
        });
    }

    /// Bytes that every packet with DATA needs beside it.
    pub(super) fn overhead(&self) -> usize {
        let auth = self.auth.as_ref().filter(|auth| auth.wants_more());
        self.extensions.overhead() + auth.map_or(0, |auth| auth.chunk_len())
    }

    /// Bytes to keep free for an AUTH chunk in the next packet.
    pub(super) fn auth_room(&self, purpose: Purpose) -> usize {
        let Some(auth) = &self.auth else { return 0 };
        let wanted = match self.control.front() {
            // It has the size that it has to have.
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

    /// Puts the AUTH chunk into a packet of `len` bytes; its length then.
    pub(super) fn authenticate(&self, buf: &mut [u8], len: usize) -> usize {
        self.auth.as_ref().map_or(len, |auth| auth.authenticate(buf, len))
    }

    /// This side takes such a chunk only authenticated.
    pub(super) fn demands_auth(&self, ty: u8) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.demands(ty))
    }

    /// Whether what follows an AUTH chunk is to be looked at; `rest` is the packet from it on.
    pub(super) fn verify(&mut self, path: Option<PathId>, auth: &Auth<'_>, rest: &[u8]) -> bool {
        // Without a key, RFC 9260 3.2 would have it stop at an unknown chunk of this type.
        let Some(keys) = &self.auth else { return false };
        match keys.verify(auth, rest) {
            Ok(()) => return true,
            Err(Distrust::Wrong) => {}
            Err(Distrust::UnsupportedHmac(id)) => {
                if let Some(path) = path {
                    self.control.push_once(path, Control::Error(OwnedCause::UnsupportedHmac(id)));
                }
            }
        }
        self.stats.bad_auth += 1;
        false
    }

    /// The packet's second chunk is a COOKIE ECHO, and there are no keys yet: both sides have opened the
    /// association at once.
    pub(super) fn awaits_cookie_behind(&self, packet: &Packet<'_>) -> bool {
        self.auth.is_none()
            && self.is_opening()
            && matches!(packet.chunks().nth(1), Some(Ok(Chunk::CookieEcho(_))))
    }

    /// A COOKIE ECHO of the peer, the first chunk of a packet or behind an AUTH chunk: whether it is
    /// authenticated as it has to be (RFC 4895 6.3). Where the association has no keys yet, the cookie
    /// has what they are made of.
    #[inline(never)]
    pub(crate) fn trusts_cookie_echo(&mut self, now: Time, packet: &Packet<'_>) -> bool {
        let trusted = if let Some(auth) = &self.auth {
            trusts(auth, packet)
        } else {
            let secret = &self.shared.secret;
            let verify = |bytes| StateCookie::verify(bytes, secret, &self.config, now);
            match cookie_of(packet).map(verify) {
                Some(Ok(cookie)) => {
                    trusts_stranger(&cookie, &self.config, secret, &self.auth_keys, packet)
                }
                // It is refused for what it is.
                _ => true,
            }
        };
        self.stats.bad_auth += u64::from(!trusted);
        trusted
    }
}

/// The cookie in a COOKIE ECHO at the head of a packet, behind an AUTH chunk or not.
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

/// The same for a peer without an association. Who has to authenticate its cookie and cannot gets none.
pub(crate) fn trusts_stranger(
    cookie: &StateCookie,
    config: &crate::Config,
    secret: &[u8],
    keys: &AuthKeys,
    packet: &Packet<'_>,
) -> bool {
    let Some(theirs) = &cookie.authentication else {
        let authenticated = matches!(packet.chunks().next(), Some(Ok(Chunk::Auth(_))));
        let demanded =
            config.authentication() && demanded(config).contains(chunk_type::COOKIE_ECHO);
        return !authenticated && !demanded;
    };
    let ours = AuthOffer::ours(config, secret, cookie.local_tag, cookie.local_initial_tsn);
    trusts(&Authentication::new(&ours, theirs, keys), packet)
}
