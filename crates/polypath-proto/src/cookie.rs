//! The state cookie: the data that a listening endpoint needs from an INIT, signed and sent to the
//! peer, which returns it (RFC 9260 5.1.3, 5.1.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::auth::AuthOffer;
use crate::config::Config;
use crate::extension::Extensions;
use crate::ids::{Tsn, VerificationTag};
use crate::rng::{hmac, hmac_verify};
use crate::time::Time;

const MAC_LEN: usize = 32;

/// RFC 9260 5.1.3: "The secret key SHOULD be changed reasonably frequently (e.g., hourly)".
const KEY_PERIOD: Duration = Duration::from_secs(3600);

/// Tags of the optional fields; an address starts with 4 or 6 instead.
const OFFER: u8 = 8;
const ADAPTATION: u8 = 9;

/// The contents of a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateCookie {
    pub(crate) created: Time,
    pub(crate) life: Duration,
    pub(crate) local_tag: VerificationTag,
    pub(crate) peer_tag: VerificationTag,
    /// Tags of the association that existed when the INIT arrived, or 0 (RFC 9260 5.2.2).
    pub(crate) local_tie: VerificationTag,
    pub(crate) peer_tie: VerificationTag,
    pub(crate) local_initial_tsn: Tsn,
    pub(crate) peer_initial_tsn: Tsn,
    pub(crate) peer_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) peer_port: u16,
    /// Destination and source address of the INIT.
    pub(crate) local: IpAddr,
    pub(crate) remote: SocketAddr,
    /// The peer's addresses in its own order, including `remote`.
    pub(crate) addresses: Vec<IpAddr>,
    /// Extensions that both sides offer.
    pub(crate) extensions: Extensions,
    /// The peer's authentication parameters; the local ones follow from tag and TSN (RFC 4895 6.1).
    pub(crate) authentication: Option<AuthOffer>,
    /// The peer's Adaptation Layer Indication (RFC 5061 4.2.6).
    pub(crate) adaptation_layer: Option<u32>,
}

/// Why a cookie is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CookieError {
    /// Not signed by this endpoint, modified in transit, or signed with a key that is no longer in
    /// use.
    Forged,
    /// The cookie, and the time since its lifespan ended.
    Stale(Box<StateCookie>, Duration),
}

impl StateCookie {
    /// The lifespan of a cookie if the peer requests `increment` more: at most twice the configured
    /// one (RFC 9260 3.3.2.1.3).
    pub(crate) fn life(config: &Config, increment: Duration) -> Duration {
        config.cookie_life() + increment.min(config.cookie_life())
    }

    /// The cookie as bytes, signed with the key that `secret` yields for its time of creation.
    pub(crate) fn sign(&self, secret: &[u8]) -> Vec<u8> {
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
        let mac = hmac(&key_of(secret, self.created), &[&out]);
        out.extend(mac);
        out
    }

    /// The cookie in `bytes`, if it was signed with a key derived from `secret` and has not
    /// expired.
    pub(crate) fn verify(
        bytes: &[u8],
        secret: &[u8],
        config: &Config,
        now: Time,
    ) -> Result<Self, CookieError> {
        let at = bytes.len().checked_sub(MAC_LEN).ok_or(CookieError::Forged)?;
        let (body, mac) = bytes.split_at(at);
        // RFC 9260 5.1.5 (1): "The timestamp in the State Cookie MAY be used to determine which
        // secret key to use. If [...] the secret key to use is not available anymore, the packet
        // [...] MUST be silently discarded."
        let (created, _) = body.split_first_chunk().ok_or(CookieError::Forged)?;
        let created = Time::from_nanos(u64::from_be_bytes(*created));
        if !key_is_in_use(created, config, now) {
            return Err(CookieError::Forged);
        }
        // RFC 9260 5.1.5 (2).
        if !hmac_verify(&key_of(secret, created), &[body], mac) {
            return Err(CookieError::Forged);
        }
        let cookie = Self::decode(body).ok_or(CookieError::Forged)?;
        // RFC 9260 5.1.5 (4).
        let expiry = cookie.created + cookie.life;
        if now > expiry {
            return Err(CookieError::Stale(Box::new(cookie), now.since(expiry)));
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
                // The port is stored with the other numbers, the address with the other addresses.
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
                // The remaining `Extensions::LEN` bytes are not an address.
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

/// The key for cookies created at `created`. The secret yields one key for each period, so that no
/// earlier key must be stored.
fn key_of(secret: &[u8], created: Time) -> [u8; 32] {
    let period = created.as_nanos() / KEY_PERIOD.as_nanos() as u64;
    hmac(secret, &[b"state cookie", &period.to_be_bytes()])
}

/// Whether the key of a cookie created at `created` is still in use: for the longest lifespan, and
/// for one more period in which the cookie is reported as stale.
fn key_is_in_use(created: Time, config: &Config, now: Time) -> bool {
    let longest = StateCookie::life(config, Duration::MAX);
    created <= now && now.since(created) <= longest + KEY_PERIOD
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

    fn verify(bytes: &[u8], secret: &[u8], seconds: u64) -> Result<StateCookie, CookieError> {
        StateCookie::verify(bytes, secret, &Config::rfc9260(), Time::from_secs(seconds))
    }

    /// RFC 9260 5.1.3, 5.1.5 (1): the key changes each hour; the previous one remains valid for the
    /// cookies signed with it.
    #[test]
    fn the_key_changes_every_hour() {
        let made_at = |seconds| StateCookie { created: Time::from_secs(seconds), ..cookie() };
        let keys = [0, 3599, 3600, 7200].map(|s| key_of(b"key", Time::from_secs(s)));
        assert_eq!(keys[0], keys[1]);
        assert!(keys[1] != keys[2] && keys[2] != keys[3] && keys[0] != keys[3]);
        let late = made_at(3590);
        assert_eq!(verify(&late.sign(b"key"), b"key", 3640), Ok(late.clone()));
        let stale = verify(&late.sign(b"key"), b"key", 3700);
        assert!(matches!(stale, Err(CookieError::Stale(_, by)) if by == Duration::from_secs(50)));
        // A cookie with an old key is rejected, even with a lifespan that has not ended.
        let forever = StateCookie { life: Duration::from_secs(1 << 30), ..made_at(10) };
        let bytes = forever.sign(b"key");
        assert_eq!(verify(&bytes, b"key", 3600), Ok(forever));
        assert_eq!(verify(&bytes, b"key", 10 + 3600 + 121), Err(CookieError::Forged));
        // A cookie from the future is rejected too.
        assert_eq!(verify(&bytes, b"key", 9), Err(CookieError::Forged));
    }

    #[test]
    fn comes_back_as_it_left_until_it_is_stale() {
        let bytes = cookie().sign(b"key");
        assert_eq!(verify(&bytes, b"key", 63), Ok(cookie()));
        let stale = Err(CookieError::Stale(Box::new(cookie()), Duration::from_secs(1)));
        assert_eq!(verify(&bytes, b"key", 64), stale);
        let forged = Err(CookieError::Forged);
        assert_eq!(verify(&bytes, b"kez", 4), forged);
        for extensions in [Extensions::default(), Extensions::from_bytes([0, 6]).unwrap()] {
            let other = StateCookie { extensions, ..cookie() };
            assert_eq!(verify(&other.sign(b"key"), b"key", 4), Ok(other.clone()));
            for chunks in [None, Some(vec![]), Some(vec![0, 193])] {
                let offer = AuthOffer { random: [8; 32], chunks, hmacs: vec![3, 1] };
                let other = StateCookie { authentication: Some(offer), ..other.clone() };
                for adaptation_layer in [None, Some(0), Some(0x0800_0004)] {
                    let other = StateCookie { adaptation_layer, ..other.clone() };
                    assert_eq!(verify(&other.sign(b"key"), b"key", 4), Ok(other));
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
            prop_assert_eq!(verify(&bytes, b"key", 4), Err(CookieError::Forged));
        }
    }
}
