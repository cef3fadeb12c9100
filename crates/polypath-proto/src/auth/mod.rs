//! Authenticated chunks (RFC 4895): keys and HMACs.
//!
//! Each side derives the association's keys (6.1) from the parameters of INIT and INIT ACK (random
//! numbers, required chunk types, HMAC identifiers) and from an optional shared secret. Without a
//! secret, an attacker who has observed the handshake can derive the keys too; one who has not
//! cannot inject chunks.

mod chunk_types;

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;
use thiserror::Error;

pub use chunk_types::ChunkTypes;

use crate::ids::{Tsn, VerificationTag};
use crate::rng;
use crate::wire::{
    AUTH_HEADER_LEN, Auth, DoesNotFit, Parameter, ParameterWriter, chunk_type, hmac_id,
    parameter_type,
};

/// Bytes of the number in a Random parameter (RFC 4895 6.1).
pub(crate) const RANDOM_LEN: usize = 32;

/// HMACs that this side verifies, preferred first.
const OURS: [u16; 2] = [hmac_id::SHA_256, hmac_id::SHA_1];

/// Limit on the HMAC identifiers read from a peer; the registry has three.
const MOST_IDENTIFIERS: usize = 16;

/// Limits on the number of keys and on the bytes of each.
const MOST_KEYS: usize = 64;
const MOST_KEY_BYTES: usize = 1024;

/// Why a change of keys is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no key with this identifier.
    #[error("there is no key {0}")]
    NoSuchKey(u16),
    /// The key is the active one: it authenticates sent chunks.
    #[error("key {0} is in use: make another one active first")]
    Active(u16),
    /// The key is deactivated: it can only verify.
    #[error("key {0} is deactivated")]
    Deactivated(u16),
    /// There are 64 keys, or the key is longer than 1024 bytes.
    #[error("there is room for 64 keys of at most 1024 bytes")]
    TooMany,
}

/// Endpoint pair shared keys (RFC 4895 6.1; `SCTP_AUTH_KEY` of RFC 6458 8.3.3): numbered secrets
/// that both sides have exchanged by other means. Initially there is only key 0, which is empty.
#[derive(Clone)]
pub struct AuthKeys {
    keys: Vec<(u16, Vec<u8>)>,
    active: u16,
    /// Keys that must not be made active again.
    deactivated: Vec<u16>,
}

impl Default for AuthKeys {
    fn default() -> Self {
        Self { keys: vec![(0, Vec::new())], active: 0, deactivated: Vec::new() }
    }
}

impl std::fmt::Debug for AuthKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids = self.keys.iter().map(|(id, _)| id);
        f.debug_list().entries(ids).finish()
    }
}

impl AuthKeys {
    /// Whether both sides share a secret, or are meant to.
    pub(crate) fn hold_secrets(&self) -> bool {
        self.keys.iter().any(|(_, key)| !key.is_empty())
    }

    /// Adds a key, or replaces the key with this number.
    ///
    /// # Errors
    ///
    /// [`KeyError::TooMany`].
    pub fn set(&mut self, id: u16, secret: &[u8]) -> Result<(), KeyError> {
        if secret.len() > MOST_KEY_BYTES {
            return Err(KeyError::TooMany);
        }
        let full = self.keys.len() >= MOST_KEYS;
        match self.keys.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = secret.to_vec(),
            None if full => return Err(KeyError::TooMany),
            None => self.keys.push((id, secret.to_vec())),
        }
        self.deactivated.retain(|known| *known != id);
        Ok(())
    }

    fn has(&self, id: u16) -> bool {
        self.keys.iter().any(|(known, _)| *known == id)
    }

    /// The key that authenticates sent chunks.
    #[must_use]
    pub const fn active(&self) -> u16 {
        self.active
    }

    /// Authenticates sent chunks with this key from now on (`SCTP_AUTH_ACTIVE_KEY`).
    ///
    /// # Errors
    ///
    /// [`KeyError::NoSuchKey`], [`KeyError::Deactivated`].
    pub fn activate(&mut self, id: u16) -> Result<(), KeyError> {
        if !self.has(id) {
            return Err(KeyError::NoSuchKey(id));
        }
        if self.deactivated.contains(&id) {
            return Err(KeyError::Deactivated(id));
        }
        self.active = id;
        Ok(())
    }

    /// Ends the use of a key for sent chunks: it can verify those of the peer until it is deleted,
    /// but not become active again unless it is set anew (`SCTP_AUTH_DEACTIVATE_KEY`).
    ///
    /// # Errors
    ///
    /// [`KeyError::NoSuchKey`], [`KeyError::Active`].
    pub fn deactivate(&mut self, id: u16) -> Result<(), KeyError> {
        if id == self.active {
            return Err(KeyError::Active(id));
        }
        if !self.has(id) {
            return Err(KeyError::NoSuchKey(id));
        }
        if !self.deactivated.contains(&id) {
            self.deactivated.push(id);
        }
        Ok(())
    }

    /// Removes a key: chunks authenticated with it are no longer accepted (`SCTP_AUTH_DELETE_KEY`).
    ///
    /// # Errors
    ///
    /// [`KeyError::NoSuchKey`], [`KeyError::Active`].
    pub fn delete(&mut self, id: u16) -> Result<(), KeyError> {
        if id == self.active {
            return Err(KeyError::Active(id));
        }
        let before = self.keys.len();
        self.keys.retain(|(known, _)| *known != id);
        self.deactivated.retain(|known| *known != id);
        if self.keys.len() == before { Err(KeyError::NoSuchKey(id)) } else { Ok(()) }
    }
}

/// The authentication parameters of one side's INIT or INIT ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthOffer {
    pub(crate) random: [u8; RANDOM_LEN],
    /// The listed types; `None` if the parameter is missing.
    pub(crate) chunks: Option<Vec<u8>>,
    pub(crate) hmacs: Vec<u16>,
}

impl AuthOffer {
    /// The local parameters; `demands` are the chunk types that this side accepts only if
    /// authenticated. The random number is derived from the association's tag and initial TSN, so
    /// that an INIT ACK needs no state, and that the sides agree if both have sent an INIT.
    pub(crate) fn ours(demands: ChunkTypes, secret: &[u8], tag: VerificationTag, tsn: Tsn) -> Self {
        let numbers = [&tag.0.to_be_bytes()[..], &tsn.0.to_be_bytes()].concat();
        let chunks: Vec<u8> = demands.iter().collect();
        Self {
            random: rng::hmac(secret, &[b"authentication", &numbers]),
            chunks: (!chunks.is_empty()).then_some(chunks),
            hmacs: OURS.to_vec(),
        }
    }

    pub(crate) fn write(&self, p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        p.random(&self.random)?;
        if let Some(chunks) = &self.chunks {
            p.chunk_list(chunks)?;
        }
        p.hmac_algorithms(&self.hmacs)
    }

    /// The first of the listed HMACs that this endpoint supports.
    fn hmac(&self) -> Option<u16> {
        self.hmacs.iter().copied().find(|id| OURS.contains(id))
    }

    /// Chunk types that the offering side accepts only if authenticated.
    fn demands(&self) -> ChunkTypes {
        ChunkTypes::authenticated(self.chunks.as_deref().unwrap_or_default())
    }

    /// RFC 4895 6.1: the concatenated parameters without padding.
    fn vector(&self) -> Vec<u8> {
        let hmacs: Vec<u8> = self.hmacs.iter().flat_map(|id| id.to_be_bytes()).collect();
        let mut vector = Vec::new();
        for (ty, value) in [
            (parameter_type::RANDOM, Some(&self.random[..])),
            (parameter_type::CHUNK_LIST, self.chunks.as_deref()),
            (parameter_type::HMAC_ALGORITHMS, Some(&hmacs[..])),
        ] {
            if let Some(value) = value {
                vector.extend(ty.to_be_bytes());
                vector.extend((4 + value.len() as u16).to_be_bytes());
                vector.extend(value);
            }
        }
        vector
    }

    /// Representation in the state cookie, prefixed with its length.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.random.to_vec();
        out.push(self.hmacs.len() as u8);
        out.extend(self.hmacs.iter().flat_map(|id| id.to_be_bytes()));
        if let Some(chunks) = &self.chunks {
            out.push(1);
            out.extend(chunks);
        }
        let mut bytes = (out.len() as u16).to_be_bytes().to_vec();
        bytes.extend(out);
        bytes
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes) from the front of `bytes`.
    pub(crate) fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (len, rest) = bytes.split_first_chunk::<2>()?;
        let (own, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        *bytes = rest;
        let (random, own) = own.split_first_chunk::<RANDOM_LEN>()?;
        let (count, own) = own.split_first()?;
        let (hmacs, own) = own.split_at_checked(2 * usize::from(*count))?;
        let hmacs = hmacs.as_chunks().0.iter().map(|id| u16::from_be_bytes(*id)).collect();
        let chunks = own.split_first().map(|(_, chunks)| chunks.to_vec());
        Some(Self { random: *random, chunks, hmacs })
    }
}

/// The authentication parameters of an INIT or INIT ACK, collected one by one; the first of each
/// kind counts.
#[derive(Debug, Default)]
pub(crate) struct AuthPieces {
    random: Option<Vec<u8>>,
    chunks: Option<Vec<u8>>,
    hmacs: Option<Vec<u16>>,
}

impl AuthPieces {
    pub(crate) fn learn(&mut self, parameter: &Parameter<'_>) {
        match parameter {
            Parameter::Random(random) => {
                self.random.get_or_insert_with(|| random.to_vec());
            }
            Parameter::ChunkList(types) => {
                self.chunks.get_or_insert_with(|| types.to_vec());
            }
            Parameter::HmacAlgorithms(list) => {
                self.hmacs.get_or_insert_with(|| list.iter().collect());
            }
            _ => {}
        }
    }

    /// RFC 4895 6.1: a random number with another length ends the association.
    pub(crate) fn is_wrong(&self) -> bool {
        self.random.as_ref().is_some_and(|random| random.len() != RANDOM_LEN)
    }

    /// The collected parameters, if they form an offer that this side can accept.
    pub(crate) fn offer(self) -> Option<AuthOffer> {
        let random = self.random?.try_into().ok()?;
        let (chunks, hmacs) = (self.chunks, self.hmacs?);
        let bounded = chunks.as_ref().is_none_or(|types| types.len() <= 256)
            && hmacs.len() <= MOST_IDENTIFIERS;
        let offer = AuthOffer { random, chunks, hmacs };
        (bounded && offer.hmac().is_some()).then_some(offer)
    }
}

/// Why the chunks after an AUTH chunk are discarded (RFC 4895 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distrust {
    /// This side has not listed the HMAC, and reports that to the peer.
    UnsupportedHmac(u16),
    /// The key is unknown, or the HMAC is wrong.
    Wrong,
}

/// One of the association's keys, prepared for both HMACs.
#[derive(Clone, Debug)]
struct Keyed {
    id: u16,
    sha_1: Hmac<Sha1>,
    sha_256: Hmac<Sha256>,
}

/// The authentication that both sides of an association have agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    /// The key vectors, the smaller one first.
    vectors: [Vec<u8>; 2],
    keys: Vec<Keyed>,
    active: u16,
    ours: ChunkTypes,
    theirs: ChunkTypes,
    hmac: u16,
}

impl Authentication {
    pub(crate) fn new(ours: &AuthOffer, theirs: &AuthOffer, keys: &AuthKeys) -> Self {
        let (a, b) = (ours.vector(), theirs.vector());
        // Compared as numbers: neither vector starts with a zero.
        let ascend = (a.len(), &a) <= (b.len(), &b);
        let mut all = Self {
            vectors: if ascend { [a, b] } else { [b, a] },
            keys: Vec::new(),
            active: 0,
            ours: ours.demands(),
            theirs: theirs.demands(),
            hmac: theirs.hmac().unwrap_or(hmac_id::SHA_1),
        };
        all.set_keys(keys);
        all
    }

    /// Replaces the endpoint pair shared keys.
    pub(crate) fn set_keys(&mut self, keys: &AuthKeys) {
        self.active = keys.active;
        let [smaller, larger] = &self.vectors;
        let keyed = keys.keys.iter().map(|(id, secret)| {
            let key = [secret, smaller.as_slice(), larger].concat();
            const ANY: &str = "HMAC takes keys of any length";
            Keyed {
                id: *id,
                sha_1: Hmac::new_from_slice(&key).expect(ANY),
                sha_256: Hmac::new_from_slice(&key).expect(ANY),
            }
        });
        self.keys = keyed.collect();
    }

    /// Whether this side accepts chunk type `ty` only if authenticated.
    pub(crate) const fn demands(&self, ty: u8) -> bool {
        self.ours.contains(ty)
    }

    /// Whether the peer has listed chunk type `ty`.
    pub(crate) const fn wants(&self, ty: u8) -> bool {
        self.theirs.contains(ty)
    }

    /// Whether chunk type `ty` must be authenticated for the peer; address changes always are.
    pub(crate) const fn is_demanded(&self, ty: u8) -> bool {
        self.theirs.contains(ty) || matches!(ty, chunk_type::ASCONF | chunk_type::ASCONF_ACK)
    }

    /// Whether the peer requires authentication of a chunk type that any packet may contain, even
    /// one with DATA.
    pub(crate) fn wants_more(&self) -> bool {
        let rare = [chunk_type::ASCONF, chunk_type::ASCONF_ACK, chunk_type::COOKIE_ECHO];
        self.theirs.iter().any(|ty| !rare.contains(&ty))
    }

    const fn hmac_len(&self) -> usize {
        if self.hmac == hmac_id::SHA_256 { 32 } else { 20 }
    }

    /// Bytes of an AUTH chunk from this side.
    pub(crate) const fn chunk_len(&self) -> usize {
        AUTH_HEADER_LEN + self.hmac_len()
    }

    /// Authenticates the chunks that the peer requires in the packet of `len` bytes in `buf`, and
    /// returns the new length.
    pub(crate) fn authenticate(&self, buf: &mut [u8], len: usize) -> usize {
        let Some(key) = self.keys.iter().find(|key| key.id == self.active) else { return len };
        let ids = (self.active, self.hmac, self.hmac_len());
        Auth::insert(
            buf,
            len,
            ids,
            |ty| self.is_demanded(ty),
            |data| {
                if self.hmac == hmac_id::SHA_256 {
                    key.sha_256.clone().chain_update(data).finalize().into_bytes().to_vec()
                } else {
                    key.sha_1.clone().chain_update(data).finalize().into_bytes().to_vec()
                }
            },
        )
    }

    /// Verifies an AUTH chunk of the peer; `rest` is the packet from that chunk on.
    pub(crate) fn verify(&self, auth: &Auth<'_>, rest: &[u8]) -> Result<(), Distrust> {
        if !OURS.contains(&auth.hmac_id) {
            return Err(Distrust::UnsupportedHmac(auth.hmac_id));
        }
        let key = self.keys.iter().find(|key| key.id == auth.key_id).ok_or(Distrust::Wrong)?;
        let zeros = [0; 32];
        let zeros = zeros.get(..auth.hmac.len()).ok_or(Distrust::Wrong)?;
        let head = rest.get(..AUTH_HEADER_LEN).ok_or(Distrust::Wrong)?;
        let tail = rest.get(AUTH_HEADER_LEN + zeros.len()..).ok_or(Distrust::Wrong)?;
        let right = if auth.hmac_id == hmac_id::SHA_256 {
            let mac = key.sha_256.clone().chain_update(head).chain_update(zeros);
            mac.chain_update(tail).verify_slice(auth.hmac).is_ok()
        } else {
            let mac = key.sha_1.clone().chain_update(head).chain_update(zeros);
            mac.chain_update(tail).verify_slice(auth.hmac).is_ok()
        };
        if right { Ok(()) } else { Err(Distrust::Wrong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(random: u8, chunks: Option<&[u8]>, hmacs: &[u16]) -> AuthOffer {
        let chunks = chunks.map(<[u8]>::to_vec);
        AuthOffer { random: [random; 32], chunks, hmacs: hmacs.to_vec() }
    }

    #[test]
    fn an_offer_comes_back_from_its_bytes() {
        for offer in
            [offer(1, None, &[1]), offer(2, Some(&[]), &[3, 1]), offer(3, Some(&[0, 9]), &[])]
        {
            let mut bytes = offer.to_bytes();
            bytes.extend([7, 7]);
            let mut rest = bytes.as_slice();
            assert_eq!((AuthOffer::take(&mut rest), rest), (Some(offer), &[7, 7][..]));
            assert_eq!(AuthOffer::take(&mut &bytes[..20]), None);
        }
    }

    /// RFC 4895 6.1: type, length and value of each parameter, without padding; the secret, then
    /// the smaller and the larger vector. The key and the HMAC were computed with an independent
    /// program.
    #[test]
    fn keys_are_made_as_the_rfc_says() {
        let (ours, theirs) =
            (offer(0xaa, Some(&[0xc1, 0x80, 0]), &[3, 1]), offer(0x55, None, &[1]));
        assert_eq!(ours.vector().len(), 36 + 7 + 8);
        let mut keys = AuthKeys::default();
        keys.set(7, b"secret").unwrap();
        keys.activate(7).unwrap();
        let a = Authentication::new(&ours, &theirs, &keys);
        let b = Authentication::new(&theirs, &ours, &keys);
        assert_eq!(a.vectors, b.vectors);
        assert_eq!(a.vectors[0], theirs.vector());
        assert_eq!((a.hmac, b.hmac), (hmac_id::SHA_1, hmac_id::SHA_256));
        let mut packet = vec![0; 12];
        packet.extend([0, 3, 0, 20, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, b'd', b'a', b't', b'a']);
        let len = packet.len();
        packet.resize(200, 0);
        let end = b.authenticate(&mut packet, len);
        assert_eq!(end, len + 40);
        assert_eq!(
            packet[20..52],
            hex("fd56d7d77ed583520c43efcf1c1ca96ed6ad63391ffc9f72b5698a770d630271")
        );
        let auth = Auth { key_id: 7, hmac_id: 3, hmac: &packet[20..52] };
        assert_eq!(a.verify(&auth, &packet[12..end]), Ok(()));
        assert_eq!(a.verify(&Auth { key_id: 0, ..auth }, &packet[12..end]), Err(Distrust::Wrong));
        assert_eq!(a.verify(&Auth { key_id: 1, ..auth }, &packet[12..end]), Err(Distrust::Wrong));
        let other = Err(Distrust::UnsupportedHmac(2));
        assert_eq!(a.verify(&Auth { hmac_id: 2, ..auth }, &packet[12..end]), other);
        for len in 0..32 {
            let short = Auth { hmac: &auth.hmac[..len], ..auth };
            assert_eq!(a.verify(&short, &packet[12..end]), Err(Distrust::Wrong));
        }
        for at in 12..end {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            let read = Auth { hmac: &changed[20..52], ..auth };
            let outcome = a.verify(&read, &changed[12..end]);
            assert!(outcome.is_err(), "byte {at}");
        }
    }

    fn hex(text: &str) -> Vec<u8> {
        let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn keys_come_and_go() {
        let mut keys = AuthKeys::default();
        assert_eq!(keys.delete(0), Err(KeyError::Active(0)));
        assert_eq!(keys.activate(1), Err(KeyError::NoSuchKey(1)));
        keys.set(1, b"one").unwrap();
        keys.activate(1).unwrap();
        assert_eq!((keys.active(), keys.deactivate(1)), (1, Err(KeyError::Active(1))));
        assert_eq!(keys.deactivate(2), Err(KeyError::NoSuchKey(2)));
        keys.set(2, b"two").unwrap();
        assert_eq!((keys.deactivate(2), keys.deactivate(2)), (Ok(()), Ok(())));
        assert_eq!(keys.activate(2), Err(KeyError::Deactivated(2)));
        keys.set(2, b"two again").unwrap();
        assert_eq!(keys.activate(2), Ok(()));
        keys.activate(1).unwrap();
        keys.delete(2).unwrap();
        assert_eq!((keys.delete(0), keys.delete(0)), (Ok(()), Err(KeyError::NoSuchKey(0))));
        assert_eq!(keys.set(2, &[0; 1025]), Err(KeyError::TooMany));
        assert!(!format!("{keys:?}").contains("111"));
        for id in 2..65 {
            keys.set(id, b"").unwrap();
        }
        assert_eq!(keys.set(65, b""), Err(KeyError::TooMany));
    }
}
