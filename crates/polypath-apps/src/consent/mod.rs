//! Consent: which peers an application accepts.
//!
//! The side that opens the association (the sender) sends a [`Hello`](message) with the versions of
//! its protocol. The other side accepts it if it knows the certificate, or demands a code phrase.
//! Both then prove to know the phrase by SPAKE2, whose messages do not help to guess it: an
//! attacker has one attempt per exchange, and the [`Door`] pauses after three failures. The proof
//! covers the certificates of both sides, so that no host in between can pass it on.

mod door;
mod exchange;
pub mod message;
mod phrase;
mod session;

pub use door::{Door, Needs};
pub use exchange::Binding;
pub use phrase::{Phrase, PhraseError};
pub use session::{Consent, Greeting, Service, answer, decline, greeted, hello};
