//! Proof of a code phrase by SPAKE2, in both directions.

use hmac::{Hmac, KeyInit, Mac};
use polypath::Fingerprint;
use sha2::Sha256;
use spake2::{Ed25519Group, Identity, Password, Spake2};

use crate::consent::phrase::Phrase;

/// Bytes of a proof.
pub(crate) const PROOF: usize = 32;

/// The connection that a proof is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Name of the application's protocol.
    pub service: &'static str,
    /// Certificate of the side that opened the association; `None` in clear.
    pub opener: Option<Fingerprint>,
    /// Certificate of the side that accepted it; `None` in clear.
    pub acceptor: Option<Fingerprint>,
}

impl Binding {
    /// Name of a side in the exchange: its key depends on both.
    fn identity(&self, side: &str, fingerprint: Option<Fingerprint>) -> Identity {
        let certificate = fingerprint.map_or_else(|| "in clear".to_owned(), |f| f.to_string());
        Identity::new(format!("polypath {} {side} {certificate}", self.service).as_bytes())
    }
}

/// A side's state after its first message.
pub(crate) struct Exchange(Spake2<Ed25519Group>);

/// The key that both sides have if they know the same phrase.
pub(crate) struct Key(Vec<u8>);

impl Exchange {
    /// Begins as the side that opened the association; returns the message to send.
    pub(crate) fn open(phrase: &Phrase, binding: &Binding) -> (Self, Vec<u8>) {
        let (state, message) = Spake2::start_a(
            &Password::new(phrase.secret()),
            &binding.identity("opener", binding.opener),
            &binding.identity("acceptor", binding.acceptor),
        );
        (Self(state), message)
    }

    /// Begins as the side that accepted it.
    pub(crate) fn accept(phrase: &Phrase, binding: &Binding) -> (Self, Vec<u8>) {
        let (state, message) = Spake2::start_b(
            &Password::new(phrase.secret()),
            &binding.identity("opener", binding.opener),
            &binding.identity("acceptor", binding.acceptor),
        );
        (Self(state), message)
    }

    /// Ends the exchange with the peer's message; `None` if it is malformed.
    pub(crate) fn finish(self, message: &[u8]) -> Option<Key> {
        self.0.finish(message).ok().map(Key)
    }
}

impl Key {
    /// Proof for the peer that this side knows the phrase.
    pub(crate) fn proof(&self, opener: bool) -> [u8; PROOF] {
        self.mac(opener).finalize().into_bytes().into()
    }

    /// Whether the peer's proof shows that it knows the phrase; in constant time.
    pub(crate) fn is_proven(&self, opener: bool, proof: &[u8]) -> bool {
        self.mac(opener).verify_slice(proof).is_ok()
    }

    fn mac(&self, opener: bool) -> Hmac<Sha256> {
        let side: &[u8] = if opener { b"polypath opener" } else { b"polypath acceptor" };
        // HMAC takes keys of any length (RFC 2104 2).
        #[expect(clippy::expect_used, reason = "never fails")]
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length");
        mac.chain_update(side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(opener: &[u8], acceptor: &[u8]) -> Binding {
        let fingerprint = |bytes| Some(Fingerprint::of(bytes));
        Binding { service: "test", opener: fingerprint(opener), acceptor: fingerprint(acceptor) }
    }

    fn keys(
        (phrase, binding): (&str, Binding),
        (other, their_binding): (&str, Binding),
    ) -> (Key, Key) {
        let (opener, first) = Exchange::open(&phrase.parse().unwrap(), &binding);
        let (acceptor, second) = Exchange::accept(&other.parse().unwrap(), &their_binding);
        (opener.finish(&second).unwrap(), acceptor.finish(&first).unwrap())
    }

    #[test]
    fn the_same_phrase_proves_itself() {
        let same = || ("correct horse", binding(b"a", b"b"));
        let (opener, acceptor) = keys(same(), same());
        assert!(acceptor.is_proven(true, &opener.proof(true)));
        assert!(opener.is_proven(false, &acceptor.proof(false)));
        // A proof that is sent back proves nothing.
        assert!(!opener.is_proven(false, &opener.proof(true)));
    }

    #[test]
    fn another_phrase_or_another_certificate_does_not() {
        for other in [
            ("correct house", binding(b"a", b"b")),
            ("correct horse", binding(b"m", b"b")),
            ("correct horse", binding(b"a", b"m")),
            ("correct horse", Binding { service: "perf", ..binding(b"a", b"b") }),
            ("correct horse", Binding { opener: None, ..binding(b"a", b"b") }),
        ] {
            let (opener, acceptor) = keys(("correct horse", binding(b"a", b"b")), other);
            assert!(!acceptor.is_proven(true, &opener.proof(true)));
            assert!(!opener.is_proven(false, &acceptor.proof(false)));
        }
    }

    #[test]
    fn malformed_messages_are_rejected() {
        for message in [&b""[..], b"A", &[0x42; 33], &[0xff; 40], &[0x41; 200]] {
            let phrase = "correct horse".parse().unwrap();
            let (opener, _) = Exchange::open(&phrase, &binding(b"a", b"b"));
            // Points that are on the curve by chance give a key that proves nothing.
            if let Some(key) = opener.finish(message) {
                assert!(!key.is_proven(false, &[0; PROOF]));
            }
        }
    }
}
