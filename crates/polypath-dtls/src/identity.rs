//! The identity of a host: a private key and the certificate for it.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use thiserror::Error;

use crate::certificate::{self, SERIAL};
use crate::fingerprint::Fingerprint;
use crate::pem;

const KEY: &str = "PRIVATE KEY";
const CERTIFICATE: &str = "CERTIFICATE";

/// A private key (ECDSA, P-256) and a self-signed certificate.
#[derive(Clone)]
pub struct Identity {
    /// PKCS #8.
    pub(crate) key: Vec<u8>,
    /// DER.
    pub(crate) certificate: Vec<u8>,
}

/// Why an identity cannot be created or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The operating system provides no random bytes.
    #[error("the operating system gives no random bytes")]
    Randomness,
    /// The text does not have exactly one private key and one certificate.
    #[error("it has not one private key and one certificate in PEM")]
    NotPem,
    /// The private key is malformed, or not one for ECDSA with P-256 in PKCS #8.
    #[error("its private key is not one for ECDSA with P-256 in PKCS #8")]
    Key,
    /// The certificate is malformed, or not one for ECDSA with P-256.
    #[error("its certificate is not one for ECDSA with P-256")]
    Certificate,
    /// The private key belongs to another certificate.
    #[error("its private key and its certificate do not belong together")]
    Mismatch,
}

impl Identity {
    /// Creates a new identity.
    ///
    /// # Errors
    ///
    /// The operating system provides no random bytes.
    pub fn generate() -> Result<Self, IdentityError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let failed = |_| IdentityError::Randomness;
        let mut serial = [0; SERIAL];
        random.fill(&mut serial).map_err(failed)?;
        serial[0] = 1;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random)
            .map_err(|_| IdentityError::Key)?;
        let to_be_signed = certificate::to_be_signed(&serial, key.public_key().as_ref());
        let signature = key.sign(&random, &to_be_signed).map_err(failed)?;
        let certificate = certificate::signed(&to_be_signed, signature.as_ref());
        Ok(Self { key: pkcs8.as_ref().to_vec(), certificate })
    }

    /// Fingerprint of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The identity in PEM. The text contains the private key: keep it where others cannot read it.
    pub fn to_pem(&self) -> String {
        pem::write(KEY, &self.key) + &pem::write(CERTIFICATE, &self.certificate)
    }

    /// Reads a private key and a certificate in PEM, which other programs may have made.
    ///
    /// # Errors
    ///
    /// The text does not have one key and one certificate, one of them is malformed or not for
    /// ECDSA with P-256, or they do not belong together.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        let key = pem::read(text, KEY).ok_or(IdentityError::NotPem)?;
        let certificate = pem::read(text, CERTIFICATE).ok_or(IdentityError::NotPem)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &key, &SystemRandom::new())
                .map_err(|_| IdentityError::Key)?;
        let parts = certificate::read(&certificate).ok_or(IdentityError::Certificate)?;
        if pair.public_key().as_ref() != parts.point {
            return Err(IdentityError::Mismatch);
        }
        Ok(Self { key, certificate })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let identity = Identity::generate().unwrap();
        let again = Identity::from_pem(&identity.to_pem()).unwrap();
        assert_eq!(again.fingerprint(), identity.fingerprint());
        assert_eq!(again.key, identity.key);
        assert_ne!(Identity::generate().unwrap().fingerprint(), identity.fingerprint());
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let (one, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let mixed = pem::write(KEY, &one.key) + &pem::write(CERTIFICATE, &other.certificate);
        assert_eq!(Identity::from_pem(&mixed).unwrap_err(), IdentityError::Mismatch);
        let no_key = pem::write(CERTIFICATE, &one.certificate);
        assert_eq!(Identity::from_pem(&no_key).unwrap_err(), IdentityError::NotPem);
        let broken = pem::write(KEY, &one.key[1..]) + &no_key;
        assert_eq!(Identity::from_pem(&broken).unwrap_err(), IdentityError::Key);
    }

    #[test]
    fn debug_tells_no_key() {
        let identity = Identity::generate().unwrap();
        let text = format!("{identity:?}");
        assert_eq!(text, format!("Identity(Fingerprint({}))", identity.fingerprint().short()));
    }
}
