//! Key agreement: X25519 and P-256.

use std::fmt;

use dimpl::crypto::{ActiveKeyExchange, Buf, NamedGroup, SupportedKxGroup};
use dimpl::{CryptoError, CryptoOperation};
use ring::agreement::{self, Algorithm, ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, X25519};
use ring::rand::SystemRandom;

pub(super) static GROUPS: &[&dyn SupportedKxGroup] = &[
    &Group { name: NamedGroup::X25519, algorithm: &X25519 },
    &Group { name: NamedGroup::Secp256r1, algorithm: &ECDH_P256 },
];

#[derive(Debug)]
struct Group {
    name: NamedGroup,
    algorithm: &'static Algorithm,
}

impl SupportedKxGroup for Group {
    fn name(&self) -> NamedGroup {
        self.name
    }

    fn start_exchange(&self, mut public: Buf) -> Result<Box<dyn ActiveKeyExchange>, CryptoError> {
        let private = EphemeralPrivateKey::generate(self.algorithm, &SystemRandom::new())
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::GenerateEphemeralKey))?;
        let key = private
            .compute_public_key()
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::ComputePublicKey))?;
        public.clear();
        public.extend_from_slice(key.as_ref());
        Ok(Box::new(Exchange { group: self.name, algorithm: self.algorithm, private, public }))
    }
}

struct Exchange {
    group: NamedGroup,
    algorithm: &'static Algorithm,
    private: EphemeralPrivateKey,
    public: Buf,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("group", &self.group).finish_non_exhaustive()
    }
}

impl ActiveKeyExchange for Exchange {
    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn complete(self: Box<Self>, peer: &[u8], out: &mut Buf) -> Result<(), CryptoError> {
        let peer = UnparsedPublicKey::new(self.algorithm, peer);
        agreement::agree_ephemeral(self.private, &peer, |secret| {
            out.clear();
            out.extend_from_slice(secret);
        })
        .map_err(|_| CryptoError::InvalidPublicKey(self.group))
    }

    fn group(&self) -> NamedGroup {
        self.group
    }
}
