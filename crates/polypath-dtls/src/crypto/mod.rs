//! The cryptographic provider for `dimpl`: the algorithms of `ring`.
//!
//! X25519 or P-256, ECDSA with P-256 and SHA-256; AES-128-GCM where the processor has instructions
//! for it, otherwise ChaCha20-Poly1305. Two hosts that run this program need no more; `dimpl`'s own
//! providers include all algorithms, with an order of magnitude more code to compile.

mod aead;
mod agreement;
mod hash;
mod mask;
mod nonces;
mod signature;

use std::sync::{Mutex, PoisonError};

use dimpl::crypto::{CryptoProvider, SecureRandom, SupportedDtls13CipherSuite};
use dimpl::{CryptoError, CryptoOperation};
use ring::hmac;
use ring::rand::SystemRandom;

use crate::key_log::Secret;

/// The provider of one layer.
///
/// Two of its functions need more than `dimpl` passes to them: `hmac_sha256` the key of a client's
/// cookie, and `encrypt_sn` the key schedules of earlier records. Their arguments are a key and
/// data, and nothing that identifies the connection or the layer. So the objects that `dimpl` calls
/// keep that state, and each layer has objects of its own. Each connection cannot: a provider
/// belongs to a `dimpl::Config`, and to build one runs the provider's self-test, which has more key
/// agreements than a handshake.
///
/// [`CryptoProvider`] holds nothing but `&'static` objects, which cannot be freed. A new layer
/// takes over the objects of a dropped one, so there are as many as there were layers at a time.
#[derive(Debug)]
pub(crate) struct Provider(Objects);

#[derive(Clone, Debug)]
struct Objects {
    hmacs: &'static hash::Hmacs,
    suites_13: &'static [aead::Suite13; 2],
    /// All objects, as `dimpl` takes them.
    provider: CryptoProvider,
}

/// Objects of dropped layers, without keys.
static SPARE: Mutex<Vec<Objects>> = Mutex::new(Vec::new());

impl Provider {
    pub(crate) fn new() -> Self {
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(spare.unwrap_or_else(Objects::new))
    }

    /// The provider for the configuration of the layer's connections.
    pub(crate) fn for_dimpl(&self) -> CryptoProvider {
        self.0.provider.clone()
    }

    /// Records the secrets of this layer's connections from now on.
    pub(crate) fn record_secrets(&self) {
        self.0.hmacs.record_secrets(true);
    }

    /// The secrets derived since the last call, if they are recorded.
    pub(crate) fn take_secrets(&self) -> Vec<Secret> {
        self.0.hmacs.take_secrets()
    }

    /// Calls `f`, in which this layer's connections make and verify cookies with this key.
    pub(crate) fn with_cookie_key<R>(&self, key: &hmac::Key, f: impl FnOnce() -> R) -> R {
        self.0.hmacs.set_cookie_key(Some(key.clone()));
        let result = f();
        self.0.hmacs.set_cookie_key(None);
        result
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.0.hmacs.set_cookie_key(None);
        self.0.hmacs.record_secrets(false);
        self.0.suites_13.iter().for_each(aead::Suite13::clear);
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0.clone());
    }
}

impl Objects {
    fn new() -> Self {
        let hmacs: &'static hash::Hmacs = Box::leak(Box::default());
        let suites_13: &'static [aead::Suite13; 2] = Box::leak(Box::new(aead::suites_13()));
        let offered = suites_13.each_ref().map(|suite| suite as &dyn SupportedDtls13CipherSuite);
        let provider = CryptoProvider {
            kx_groups: agreement::GROUPS,
            signature_verification: &signature::Verifier,
            key_provider: &signature::Keys,
            secure_random: &Random,
            hash_provider: &hash::Hashes,
            hmac_provider: hmacs,
            cipher_suites: aead::SUITES_12,
            dtls13_cipher_suites: Box::leak(Box::new(offered)),
        };
        Self { hmacs, suites_13, provider }
    }
}

#[derive(Debug)]
struct Random;

impl SecureRandom for Random {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), CryptoError> {
        ring::rand::SecureRandom::fill(&SystemRandom::new(), buffer)
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::FillRandom))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(provider: &Provider) -> [u8; 32] {
        provider.for_dimpl().hmac_provider.hmac_sha256(b"key", b"data").unwrap()
    }

    #[test]
    fn a_cookie_key_is_for_one_layer_and_for_one_call() {
        let (one, other) = (Provider::new(), Provider::new());
        let usual = mac(&one);
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"cookie");
        let (with, without) = one.with_cookie_key(&key, || (mac(&one), mac(&other)));
        assert_eq!(with, hmac::sign(&key, b"data").as_ref());
        assert_eq!((without, mac(&one)), (usual, usual));
    }
}
