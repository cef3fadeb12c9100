//! Hashes, and MACs based on them.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use dimpl::CryptoError;
use dimpl::crypto::{Buf, HashAlgorithm, HashContext, HashProvider, HmacProvider};
use ring::{digest, hmac};

use crate::key_log::Secret;

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
    /// Secrets that were derived and not yet taken; `None` if they are not recorded.
    recorded: Mutex<Option<Recorded>>,
}

/// Secrets in the order in which they were derived.
#[derive(Default)]
struct Recorded {
    secrets: Vec<Secret>,
    /// The first 32 bytes of a master secret of DTLS 1.2.
    master: Option<Vec<u8>>,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorded(..)")
    }
}

impl Recorded {
    /// Records the secret that an HMAC over `data` is, if it is one.
    ///
    /// `dimpl` derives all secrets by HMACs of this provider. In DTLS 1.3 the data is an HkdfLabel
    /// (RFC 8446 7.1): a length, the label after its own length, and a context. In DTLS 1.2 it is
    /// A(i), the label and the seed (RFC 5246 5), for 32 bytes of the 48.
    fn add(&mut self, data: &[u8], tag: &[u8]) {
        const LABELS: [(&[u8], &str); 4] = [
            (b"dtls13c hs traffic", "CLIENT_HANDSHAKE_TRAFFIC_SECRET"),
            (b"dtls13s hs traffic", "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
            (b"dtls13c ap traffic", "CLIENT_TRAFFIC_SECRET_0"),
            (b"dtls13s ap traffic", "SERVER_TRAFFIC_SECRET_0"),
        ];
        let begins = |at: usize, label: &[u8]| data.get(at..).is_some_and(|d| d.starts_with(label));
        if let Some((_, label)) = LABELS.into_iter().find(|(label, _)| begins(3, label)) {
            self.secrets.push(Secret { label, value: tag.to_vec() });
        } else if begins(32, b"extended master secret") || begins(32, b"master secret") {
            match self.master.take() {
                None => self.master = Some(tag.to_vec()),
                Some(mut value) => {
                    value.extend_from_slice(tag);
                    value.truncate(48);
                    self.secrets.push(Secret { label: "CLIENT_RANDOM", value });
                }
            }
        }
    }
}

impl Hmacs {
    pub(super) fn set_cookie_key(&self, key: Option<hmac::Key>) {
        *self.cookie.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }

    /// Whether secrets are recorded from now on; drops those recorded before.
    pub(super) fn record_secrets(&self, record: bool) {
        let recorded = record.then(Recorded::default);
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = recorded;
    }

    /// The secrets derived since the last call.
    pub(super) fn take_secrets(&self) -> Vec<Secret> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.as_mut().map(|recorded| std::mem::take(&mut recorded.secrets)).unwrap_or_default()
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
        if let Some(recorded) = &mut *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) {
            recorded.add(data, bytes);
        }
        let room = out.get_mut(..bytes.len()).ok_or(CryptoError::UnsupportedHmacHash(hash))?;
        room.copy_from_slice(bytes);
        Ok(bytes.len())
    }
}
