//! The state cookie: all that a listening endpoint must remember of an INIT, signed and handed to
//! the peer for safekeeping (RFC 9260 5.1.3, 5.1.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::auth::AuthOffer;
use crate::rng::{hmac, hmac_verify};
use crate::{Extensions, Time, Tsn, VerificationTag};

const MAC_LEN: usize = 32;

/// Where an address would begin with 4 or 6.
const OFFER: u8 = 8;
const ADAPTATION: u8 = 9;

/// What the cookie holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateCookie {
    pub(crate) created: Time,
    pub(crate) life: Duration,
    pub(crate) local_tag: VerificationTag,
    pub(crate) peer_tag: VerificationTag,
    /// Tags of the association that existed when the INIT came, or 0 (RFC 9260 5.2.2).
    pub(crate) local_tie: VerificationTag,
    pub(crate) peer_tie: VerificationTag,
    pub(crate) local_initial_tsn: Tsn,
    pub(crate) peer_initial_tsn: Tsn,
    pub(crate) peer_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) peer_port: u16,
    /// Where the INIT arrived, and where it came from.
    pub(crate) local: IpAddr,
    pub(crate) remote: SocketAddr,
    /// The peer's addresses in its own order, `remote` among them.
    pub(crate) addresses: Vec<IpAddr>,
    /// What both sides offer beyond RFC 9260.
    pub(crate) extensions: Extensions,
    /// What the peer says of authentication; what we say follows from tag and TSN (RFC 4895 6.1).
    pub(crate) authentication: Option<AuthOffer>,
    /// What the peer says of the layer above it (RFC 5061 4.2.6).
    pub(crate) adaptation_layer: Option<u32>,
}

/// Why a cookie is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieError {
    /// Not ours, or changed on its way.
    Forged,
    /// Ours, but too old: by how much.
    Stale(Duration),
}

impl StateCookie {
    /// The cookie as bytes, signed with `key`.
    pub(crate) fn sign(&self, key: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(160);
        out.extend(self.created.as_nanos().to_be_bytes());
        out.extend((self.life.as_nanos() as u64).to_be_bytes());
        for word in [
            self.local_tag.0,
            self.peer_tag.0,
            self.local_tie.0,
            self.peer_tie.0,
            self.local_initial_tsn.0,
            self.peer_initial_tsn.0,
            self.peer_rwnd,
        ] {
            out.extend(word.to_be_bytes());
        }
        for half in
            [self.outbound_streams, self.inbound_streams, self.peer_port, self.remote.port()]
        {
            out.extend(half.to_be_bytes());
        }
        put_ip(&mut out, self.local);
        put_ip(&mut out, self.remote.ip());
        for address in &self.addresses {
            put_ip(&mut out, *address);
        }
        if let Some(offer) = &self.authentication {
            out.push(OFFER);
            out.extend(offer.to_bytes());
        }
        if let Some(indication) = self.adaptation_layer {
            out.push(ADAPTATION);
            out.extend(indication.to_be_bytes());
        }
        out.extend(self.extensions.to_bytes().into_iter().flatten());
        let mac = hmac(key, &[&out]);
        out.extend(mac);
        out
    }

    /// The cookie in `bytes`, if it was signed with `key` and has not expired.
    pub(crate) fn verify(bytes: &[u8], key: &[u8], now: Time) -> Result<Self, CookieError> {
        let at = bytes.len().checked_sub(MAC_LEN).ok_or(CookieError::Forged)?;
        let (body, mac) = bytes.split_at(at);
        // RFC 9260 5.1.5 (1), (2).
        if !hmac_verify(key, &[body], mac) {
            return Err(CookieError::Forged);
        }
        let cookie = Self::decode(body).ok_or(CookieError::Forged)?;
        // RFC 9260 5.1.5 (4).
        let expiry = cookie.created + cookie.life;
        if now > expiry {
            return Err(CookieError::Stale(now.since(expiry)));
        }
        Ok(cookie)
    }

    fn decode(mut body: &[u8]) -> Option<Self> {
        let b = &mut body;
        Some(Self {
            created: Time::from_nanos(take(b).map(u64::from_be_bytes)?),
            life: Duration::from_nanos(take(b).map(u64::from_be_bytes)?),
            local_tag: VerificationTag(take(b).map(u32::from_be_bytes)?),
            peer_tag: VerificationTag(take(b).map(u32::from_be_bytes)?),
            local_tie: VerificationTag(take(b).map(u32::from_be_bytes)?),
            peer_tie: VerificationTag(take(b).map(u32::from_be_bytes)?),
            local_initial_tsn: Tsn(take(b).map(u32::from_be_bytes)?),
            peer_initial_tsn: Tsn(take(b).map(u32::from_be_bytes)?),
            peer_rwnd: take(b).map(u32::from_be_bytes)?,
            outbound_streams: take(b).map(u16::from_be_bytes)?,
            inbound_streams: take(b).map(u16::from_be_bytes)?,
            peer_port: take(b).map(u16::from_be_bytes)?,
            remote: {
                // The port stands with the other numbers, the address with the other addresses.
                let port = take(b).map(u16::from_be_bytes)?;
                let mut ahead = *b;
                take_ip(&mut ahead)?;
                SocketAddr::new(take_ip(&mut ahead)?, port)
            },
            local: {
                let local = take_ip(b)?;
                take_ip(b)?;
                local
            },
            addresses: {
                let mut addresses = Vec::new();
                // So few bytes are no address.
                while b.len() > Extensions::LEN && !matches!(b[0], OFFER | ADAPTATION) {
                    addresses.push(take_ip(b)?);
                }
                addresses
            },
            authentication: match b.split_first() {
                Some((&OFFER, rest)) if rest.len() > Extensions::LEN => {
                    *b = rest;
                    Some(AuthOffer::take(b)?)
                }
                _ => None,
            },
            adaptation_layer: match b.split_first() {
                Some((&ADAPTATION, rest)) if rest.len() >= 4 => {
                    *b = rest;
                    take(b).map(u32::from_be_bytes)
                }
                _ => None,
            },
            extensions: match take(b) {
                Some(bytes) => Extensions::from_bytes(bytes)?,
                None => Extensions::default(),
            },
        })
    }
}

fn put_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend(ip.octets());
        }
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn take_ip(bytes: &mut &[u8]) -> Option<IpAddr> {
    match take::<1>(bytes)? {
        [4] => take::<4>(bytes).map(|o| IpAddr::V4(Ipv4Addr::from(o))),
        [6] => take::<16>(bytes).map(|o| IpAddr::V6(Ipv6Addr::from(o))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cookie() -> StateCookie {
        StateCookie {
            created: Time::from_secs(3),
            life: Duration::from_secs(60),
            local_tag: VerificationTag(1),
            peer_tag: VerificationTag(2),
            local_tie: VerificationTag(3),
            peer_tie: VerificationTag(4),
            local_initial_tsn: Tsn(5),
            peer_initial_tsn: Tsn(6),
            peer_rwnd: 7,
            outbound_streams: 8,
            inbound_streams: 9,
            peer_port: 10,
            local: "10.0.0.1".parse().unwrap(),
            remote: "[fd00::1]:9899".parse().unwrap(),
            addresses: vec!["fd00::1".parse().unwrap(), "10.0.0.2".parse().unwrap()],
            extensions: Extensions::from_bytes([0, 1]).unwrap(),
            authentication: None,
            adaptation_layer: None,
        }
    }

    #[test]
    fn comes_back_as_it_left_until_it_is_stale() {
        let bytes = cookie().sign(b"key");
        assert_eq!(StateCookie::verify(&bytes, b"key", Time::from_secs(63)), Ok(cookie()));
        let stale = Err(CookieError::Stale(Duration::from_secs(1)));
        assert_eq!(StateCookie::verify(&bytes, b"key", Time::from_secs(64)), stale);
        let forged = Err(CookieError::Forged);
        assert_eq!(StateCookie::verify(&bytes, b"kez", Time::from_secs(4)), forged);
        for extensions in [Extensions::default(), Extensions::from_bytes([0, 6]).unwrap()] {
            let other = StateCookie { extensions, ..cookie() };
            let verified = StateCookie::verify(&other.sign(b"key"), b"key", Time::from_secs(4));
            assert_eq!(verified, Ok(other.clone()));
            for chunks in [None, Some(vec![]), Some(vec![0, 193])] {
                let offer = AuthOffer { random: [8; 32], chunks, hmacs: vec![3, 1] };
                let other = StateCookie { authentication: Some(offer), ..other.clone() };
                for adaptation_layer in [None, Some(0), Some(0x0800_0004)] {
                    let other = StateCookie { adaptation_layer, ..other.clone() };
                    let verified =
                        StateCookie::verify(&other.sign(b"key"), b"key", Time::from_secs(4));
                    assert_eq!(verified, Ok(other));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_changed_cookie_is_refused(at in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<bool>()) {
            let mut bytes = cookie().sign(b"key");
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            prop_assert_eq!(StateCookie::verify(&bytes, b"key", Time::from_secs(4)), Err(CookieError::Forged));
        }
    }
}
