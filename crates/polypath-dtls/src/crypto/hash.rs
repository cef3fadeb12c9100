//! Hashes, and MACs based on them.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use dimpl::CryptoError;
use dimpl::crypto::{Buf, HashAlgorithm, HashContext, HashProvider, HmacProvider};
use ring::{digest, hmac};

#[derive(Debug)]
pub(super) struct Hashes;

impl HashProvider for Hashes {
    fn create_hash(&self, algorithm: HashAlgorithm) -> Box<dyn HashContext> {
        // The suites use SHA-256 only; TLS also defines SHA-384.
        let algorithm = match algorithm {
            HashAlgorithm::SHA384 => &digest::SHA384,
            _ => &digest::SHA256,
        };
        Box::new(Hash(digest::Context::new(algorithm)))
    }
}

struct Hash(digest::Context);

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(..)")
    }
}

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn clone_and_finalize(&self, out: &mut Buf) {
        out.clear();
        out.extend_from_slice(self.0.clone().finish().as_ref());
    }
}

#[derive(Debug, Default)]
pub(super) struct Hmacs {
    /// Key of the cookie that is being made or verified.
    cookie: Mutex<Option<hmac::Key>>,
}

impl Hmacs {
    pub(super) fn set_cookie_key(&self, key: Option<hmac::Key>) {
        *self.cookie.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

impl HmacProvider for Hmacs {
    /// `dimpl` uses it for cookies only.
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], CryptoError> {
        let cookie = self.cookie.lock().unwrap_or_else(PoisonError::into_inner);
        let tag = match &*cookie {
            Some(cookie) => hmac::sign(cookie, data),
            None => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data),
        };
        let mut out = [0; 32];
        out.copy_from_slice(tag.as_ref());
        Ok(out)
    }

    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let algorithm = match hash {
            HashAlgorithm::SHA256 => hmac::HMAC_SHA256,
            HashAlgorithm::SHA384 => hmac::HMAC_SHA384,
            other => return Err(CryptoError::UnsupportedHmacHash(other)),
        };
        let tag = hmac::sign(&hmac::Key::new(algorithm, key), data);
        let bytes = tag.as_ref();
        let room = out.get_mut(..bytes.len()).ok_or(CryptoError::UnsupportedHmacHash(hash))?;
        room.copy_from_slice(bytes);
        Ok(bytes.len())
    }
}
