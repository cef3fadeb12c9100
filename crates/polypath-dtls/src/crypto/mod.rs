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

use dimpl::crypto::{CryptoProvider, SecureRandom};
use dimpl::{CryptoError, CryptoOperation};
use ring::rand::SystemRandom;

/// Creates the provider.
pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: agreement::GROUPS,
        signature_verification: &signature::Verifier,
        key_provider: &signature::Keys,
        secure_random: &Random,
        hash_provider: &hash::Hashes,
        hmac_provider: &hash::Hmacs,
        cipher_suites: aead::SUITES_12,
        dtls13_cipher_suites: aead::suites_13(),
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
