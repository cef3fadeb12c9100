//! Record ciphers.

use std::fmt;

use dimpl::crypto::{
    Aad, Buf, Cipher, Dtls12CipherSuite, Dtls13CipherSuite, HashAlgorithm, Nonce,
    SupportedDtls12CipherSuite, SupportedDtls13CipherSuite, TmpBuf,
};
use dimpl::{CryptoError, CryptoOperation};
use ring::aead::{self, AES_128_GCM, Algorithm, CHACHA20_POLY1305, LessSafeKey, UnboundKey};

use super::mask::Mask;
use super::nonces::Nonces;

/// In the order in which they are offered: first the suite whose nonces are record numbers.
pub(super) static SUITES_12: &[&dyn SupportedDtls12CipherSuite] =
    &[&CHACHA20_POLY1305_SHA256, &AES_128_GCM_SHA256];

/// The suites of DTLS 1.3 in order of preference, for one layer: they keep key schedules.
pub(super) fn suites_13() -> [Suite13; 2] {
    // Without instructions for it, AES is by far the slower one.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    let has_aes = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let has_aes = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    let has_aes = false;
    let aes = Suite13 { suite: &AES_128_GCM_SHA256, mask: Mask::aes() };
    let chacha20 = Suite13 { suite: &CHACHA20_POLY1305_SHA256, mask: Mask::ChaCha20 };
    if has_aes { [aes, chacha20] } else { [chacha20, aes] }
}

struct Sealing {
    key: LessSafeKey,
    /// The used nonces, if nonces are drawn at random.
    drawn: Option<Nonces>,
}

impl Sealing {
    fn boxed(
        algorithm: &'static Algorithm,
        key: &[u8],
        drawn: Option<Nonces>,
    ) -> Result<Box<dyn Cipher>, CryptoError> {
        let key = UnboundKey::new(algorithm, key)
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::CreateCipher))?;
        Ok(Box::new(Self { key: LessSafeKey::new(key), drawn }))
    }
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealing(..)")
    }
}

impl Cipher for Sealing {
    fn encrypt(&mut self, plaintext: &mut Buf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        if let Some(drawn) = &mut self.drawn {
            let [_, _, _, _, explicit @ ..] = nonce.0;
            if !drawn.take(explicit) {
                return Err(CryptoError::InvalidNonce);
            }
        }
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, aead::Aad::from(&aad[..]), plaintext)
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::Encrypt))?;
        plaintext.extend_from_slice(tag.as_ref());
        Ok(())
    }

    fn decrypt(
        &mut self,
        ciphertext: &mut TmpBuf<'_>,
        aad: Aad,
        nonce: Nonce,
    ) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let len = self
            .key
            .open_in_place(nonce, aead::Aad::from(&aad[..]), ciphertext.as_mut())
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::Decrypt))?
            .len();
        ciphertext.truncate(len);
        Ok(())
    }
}

/// A cipher suite of both versions. All use SHA-256, nonces of 12 bytes and tags of 16.
#[derive(Debug)]
struct Suite {
    algorithm: &'static Algorithm,
    in_12: Dtls12CipherSuite,
    in_13: Dtls13CipherSuite,
    /// Bytes of the nonce that are drawn for each record of DTLS 1.2, and sent with it.
    drawn: usize,
}

/// A cipher suite as DTLS 1.3 uses it, which also encrypts record numbers.
#[derive(Debug)]
pub(super) struct Suite13 {
    suite: &'static Suite,
    mask: Mask,
}

impl Suite13 {
    /// Drops the keys that it keeps.
    pub(super) fn clear(&self) {
        self.mask.clear();
    }
}

const NONCE: usize = 12;
const TAG: usize = 16;

/// In DTLS 1.2 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 (RFC 7905).
static CHACHA20_POLY1305_SHA256: Suite = Suite {
    algorithm: &CHACHA20_POLY1305,
    in_12: Dtls12CipherSuite::ECDHE_ECDSA_CHACHA20_POLY1305_SHA256,
    in_13: Dtls13CipherSuite::CHACHA20_POLY1305_SHA256,
    drawn: 0,
};

/// In DTLS 1.2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (RFC 5289), which every WebRTC
/// implementation has (RFC 8827 6.5).
static AES_128_GCM_SHA256: Suite = Suite {
    algorithm: &AES_128_GCM,
    in_12: Dtls12CipherSuite::ECDHE_ECDSA_AES128_GCM_SHA256,
    in_13: Dtls13CipherSuite::AES_128_GCM_SHA256,
    drawn: 8,
};

impl SupportedDtls12CipherSuite for Suite {
    fn suite(&self) -> Dtls12CipherSuite {
        self.in_12
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_lengths(&self) -> (usize, usize, usize) {
        (0, self.algorithm.key_len(), NONCE - self.drawn)
    }

    fn explicit_nonce_len(&self) -> usize {
        self.drawn
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Sealing::boxed(self.algorithm, key, (self.drawn > 0).then(Nonces::new))
    }
}

impl SupportedDtls13CipherSuite for Suite13 {
    fn suite(&self) -> Dtls13CipherSuite {
        self.suite.in_13
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_len(&self) -> usize {
        self.suite.algorithm.key_len()
    }

    fn iv_len(&self) -> usize {
        NONCE
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Sealing::boxed(self.suite.algorithm, key, None)
    }

    fn encrypt_sn(&self, key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
        self.mask.compute(key, sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encrypt(cipher: &mut dyn Cipher, nonce: u8) -> Result<(), CryptoError> {
        let mut text = Buf::new();
        text.extend_from_slice(b"packet");
        let encrypted = cipher.encrypt(&mut text, Aad(Default::default()), Nonce([nonce; 12]));
        assert_eq!(text.starts_with(b"packet"), encrypted.is_err(), "encrypted, or left as it was");
        encrypted
    }

    #[test]
    fn a_nonce_that_was_drawn_twice_encrypts_once() {
        let suite: &dyn SupportedDtls12CipherSuite = &AES_128_GCM_SHA256;
        let mut cipher = suite.create_cipher(&[7; 16]).unwrap();
        assert!(encrypt(&mut *cipher, 1).is_ok());
        assert!(encrypt(&mut *cipher, 1).is_err());
        assert!(encrypt(&mut *cipher, 2).is_ok());
        // With another key, the nonce is unused.
        let mut cipher = suite.create_cipher(&[8; 16]).unwrap();
        assert!(encrypt(&mut *cipher, 1).is_ok());
    }
}
