//! Signatures: ECDSA with P-256 and SHA-256.

use std::fmt;

use dimpl::crypto::{
    Buf, HashAlgorithm, KeyProvider, NamedGroup, SignatureAlgorithm, SignatureVerifier, SigningKey,
};
use dimpl::{CryptoError, CryptoOperation};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
};

use crate::certificate;

#[derive(Debug)]
pub(super) struct Keys;

impl KeyProvider for Keys {
    /// The key is parsed when it signs: a connection that ends after its first message costs no
    /// arithmetic on curves.
    fn load_private_key(&self, key: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        Ok(Box::new(Key { pkcs8: key.to_vec() }))
    }
}

struct Key {
    pkcs8: Vec<u8>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl SigningKey for Key {
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), CryptoError> {
        if hash != HashAlgorithm::SHA256 {
            let signature = SignatureAlgorithm::ECDSA;
            return Err(CryptoError::UnsupportedSignaturePair { signature, hash });
        }
        let random = SystemRandom::new();
        let failed = |_| CryptoError::OperationFailed(CryptoOperation::Sign);
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &self.pkcs8, &random)
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::LoadPrivateKey))?;
        let signature = key.sign(&random, data).map_err(failed)?;
        out.clear();
        out.extend_from_slice(signature.as_ref());
        Ok(())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &[HashAlgorithm::SHA256]
    }
}

#[derive(Debug)]
pub(super) struct Verifier;

impl SignatureVerifier for Verifier {
    fn verify_signature(
        &self,
        certificate: &[u8],
        data: &[u8],
        signature: &[u8],
        hash: HashAlgorithm,
        algorithm: SignatureAlgorithm,
    ) -> Result<(), CryptoError> {
        let group = NamedGroup::Secp256r1;
        if (hash, algorithm) != (HashAlgorithm::SHA256, SignatureAlgorithm::ECDSA) {
            return Err(CryptoError::UnsupportedSignatureVerification {
                signature: algorithm,
                hash,
                group,
            });
        }
        let wrong =
            || CryptoError::SignatureVerificationFailed { signature: algorithm, hash, group };
        // Keys of other curves are rejected here.
        let parts = certificate::read(certificate).ok_or_else(wrong)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, parts.point)
            .verify(data, signature)
            .map_err(|_| wrong())
    }
}
