//! The exchange of messages until consent.

use std::time::{Duration, Instant};

use polypath::{Association, CloseReason, Fingerprint, Message};
use tokio::time::timeout;

use crate::consent::door::{Door, Needs};
use crate::consent::exchange::{Binding, Exchange};
use crate::consent::message::{Hello, Part, Welcome};
use crate::consent::phrase::Phrase;
use crate::error::Error;

/// Time for the proof: a person may have to type the phrase.
const TYPING: Duration = Duration::from_secs(120);
/// Time for the second message of the proof, and for each reply.
const REPLY: Duration = Duration::from_secs(30);
/// Time for a reason to reach the peer.
const FAREWELL: Duration = Duration::from_secs(3);

/// A protocol with its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: &'static str,
    /// Its newest version that this side has.
    pub version: u32,
    /// Its oldest version that this side has.
    pub oldest: u32,
}

/// The peer has been accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent {
    /// Version of the protocol.
    pub version: u32,
    /// Whether both sides have proved the phrase.
    pub proved: bool,
}

/// The state of the opening side after the reply to its first message.
#[derive(Debug)]
pub struct Greeting<'a> {
    association: &'a Association,
    service: Service,
    version: u32,
    needs_proof: bool,
}

/// The first message of the opening side, to be sent with the handshake. `code` is whether this
/// side has a phrase.
pub fn hello(service: Service, code: bool) -> Message {
    let hello = Hello {
        version: service.version,
        oldest: Some(service.oldest),
        service: Some(service.name.to_owned()),
        code,
        name: String::new(),
        size: 0,
    };
    Part::Hello(hello).message()
}

/// Waits for the reply to the opening side's [`hello`], at most for `patience`.
///
/// # Errors
///
/// The association ended, or the peer is silent, refuses or has no version in common.
pub async fn greeted(
    association: &Association,
    service: Service,
    patience: Duration,
) -> Result<Greeting<'_>, Error> {
    let reply = timeout(patience, next(association)).await.map_err(|_| {
        Error::Protocol("it has accepted the connection and does not reply".to_owned())
    })?;
    match reply.map_err(older)? {
        Part::Welcome(Welcome { version, code })
            if (service.oldest..=service.version).contains(&version) =>
        {
            Ok(Greeting { association, service, version, needs_proof: code })
        }
        Part::Refused(reason) => Err(Error::Peer(reason)),
        _ => Err(Error::Protocol("unexpected reply to the first message".to_owned())),
    }
}

impl Greeting<'_> {
    /// Whether the peer demands the code phrase.
    pub const fn needs_proof(&self) -> bool {
        self.needs_proof
    }

    /// The peer accepts this side without a proof.
    pub const fn accepted(self) -> Consent {
        Consent { version: self.version, proved: false }
    }

    /// Proves the phrase to the peer, and checks that the peer knows it. `own` is this side's
    /// certificate.
    ///
    /// # Errors
    ///
    /// The association ended, the phrase is wrong, or the peer does not know it.
    pub async fn prove(self, phrase: &Phrase, own: Option<Fingerprint>) -> Result<Consent, Error> {
        let association = self.association;
        let binding =
            Binding { service: self.service.name, opener: own, acceptor: association.peer() };
        let (exchange, share) = Exchange::open(phrase, &binding);
        send(association, Part::Share(share)).await?;
        let share = match reply(association).await? {
            Part::Share(share) => share,
            part => return Err(unexpected(part)),
        };
        let key = exchange.finish(&share).ok_or_else(malformed)?;
        send(association, Part::Proof(key.proof(true).to_vec())).await?;
        match reply(association).await? {
            Part::Proof(proof) if key.is_proven(false, &proof) => {
                Ok(Consent { version: self.version, proved: true })
            }
            Part::Proof(_) => {
                Err(Error::Local("the peer does not know the code phrase".to_owned()))
            }
            part => Err(unexpected(part)),
        }
    }
}

/// Answers the first message of a peer: lets it in, or refuses it and reports the reason to it. The
/// message has to arrive within `patience`.
///
/// # Errors
///
/// The association ended, or the peer was refused.
pub async fn answer(
    association: &Association,
    service: Service,
    door: &Door,
    own: Option<Fingerprint>,
    patience: Duration,
) -> Result<Consent, Error> {
    let result = receive(association, service, door, own, patience).await;
    if let Err(error) = &result {
        decline(association, error).await;
    }
    result
}

/// Reports the reason to the peer and ends the association.
pub async fn decline(association: &Association, error: &Error) {
    let reason = match error {
        Error::Closed(_) => return,
        error => error.to_string(),
    };
    // A peer that does not read costs no more than this.
    let sent = async {
        send(association, Part::Refused(reason.clone())).await.ok()?;
        association.drained().await.ok()
    };
    let _ = timeout(FAREWELL, sent).await;
    association.abort(&reason);
}

async fn receive(
    association: &Association,
    service: Service,
    door: &Door,
    own: Option<Fingerprint>,
    patience: Duration,
) -> Result<Consent, Error> {
    let first = timeout(patience, next(association)).await.map_err(|_| silent())??;
    let Part::Hello(hello) = first else {
        return Err(Error::Protocol("the peer did not begin with its version".to_owned()));
    };
    let version = common(service, &hello)?;
    let peer = association.peer();
    let phrase = match door.needs(peer, hello.code, Instant::now()) {
        Needs::Nothing => None,
        Needs::Proof(phrase) => Some(phrase),
        Needs::Refused(reason) => return Err(Error::Local(reason)),
    };
    let welcome = Welcome { version, code: phrase.is_some() };
    send(association, Part::Welcome(welcome)).await?;
    let Some(phrase) = phrase else { return Ok(Consent { version, proved: false }) };
    let share = match timeout(TYPING, next(association)).await.map_err(|_| silent())?? {
        Part::Share(share) => share,
        part => return Err(unexpected(part)),
    };
    let binding = Binding { service: service.name, opener: peer, acceptor: own };
    let (exchange, own_share) = Exchange::accept(&phrase, &binding);
    let key = exchange.finish(&share).ok_or_else(malformed)?;
    send(association, Part::Share(own_share)).await?;
    let Part::Proof(proof) = reply(association).await? else {
        return Err(Error::Protocol("the peer sent no proof".to_owned()));
    };
    door.judge(peer, Instant::now(), || key.is_proven(true, &proof)).map_err(Error::Local)?;
    // Only a peer that knows the phrase gets a proof, which it could test guesses with.
    send(association, Part::Proof(key.proof(false).to_vec())).await?;
    Ok(Consent { version, proved: true })
}

/// The newest version that both sides have.
fn common(service: Service, hello: &Hello) -> Result<u32, Error> {
    let name = hello.service.as_deref().unwrap_or("files");
    if name != service.name {
        return Err(Error::Local(format!("this side serves only {}", service.name)));
    }
    let offered = hello.oldest.unwrap_or(hello.version)..=hello.version;
    let version = service.version.min(hello.version);
    if version >= service.oldest && offered.contains(&version) {
        return Ok(version);
    }
    let (older, newer) = if hello.version < service.oldest {
        ("the sender's", "the receiver's")
    } else {
        ("the receiver's", "the sender's")
    };
    Err(Error::Local(format!(
        "{older} polypath is older than {newer} (version {} and {} of the {} protocol): update it",
        hello.version.min(service.version),
        hello.version.max(service.version),
        service.name
    )))
}

/// Explains the abort of a receiver of version 1.
fn older(error: Error) -> Error {
    match &error {
        Error::Closed(CloseReason::PeerAbort { cause })
            if cause.contains("the file protocol has version") =>
        {
            Error::Local("the receiver's polypath is older than this one: update it".to_owned())
        }
        _ => error,
    }
}

fn silent() -> Error {
    Error::Local("the peer connected and sent nothing".to_owned())
}

fn malformed() -> Error {
    Error::Protocol("the peer's part of the key exchange is malformed".to_owned())
}

fn unexpected(part: Part) -> Error {
    match part {
        Part::Refused(reason) => Error::Peer(reason),
        _ => Error::Protocol("unexpected message before consent".to_owned()),
    }
}

async fn send(association: &Association, part: Part) -> Result<(), Error> {
    association.send(part.message()).await.map_err(Error::from)
}

async fn next(association: &Association) -> Result<Part, Error> {
    match association.recv().await {
        Ok(Some(received)) => Part::read(received),
        Ok(None) => Err(Error::Closed(CloseReason::Graceful)),
        Err(error) => Err(Error::Closed(error.0)),
    }
}

async fn reply(association: &Association) -> Result<Part, Error> {
    timeout(REPLY, next(association)).await.map_err(|_| silent())?
}

#[cfg(test)]
mod tests {
    use polypath::{ConnectOptions, Encryption, Endpoint, EndpointOptions, Identity, Trust};

    use super::*;

    const FILES: Service = Service { name: "files", version: 3, oldest: 2 };

    fn offer(version: u32, oldest: Option<u32>, service: Option<&str>) -> Hello {
        let service = service.map(str::to_owned);
        Hello { version, oldest, service, code: false, name: String::new(), size: 0 }
    }

    #[test]
    fn the_newest_common_version_is_used() {
        let version = |version, oldest| {
            common(FILES, &offer(version, oldest, Some("files"))).map_err(|e| e.to_string())
        };
        assert_eq!(version(3, Some(1)), Ok(3));
        assert_eq!(version(2, Some(2)), Ok(2));
        assert_eq!(version(5, Some(3)), Ok(3));
        let older = version(1, None).unwrap_err();
        assert!(
            older.contains("the sender's polypath is older") && older.contains("update"),
            "{older}"
        );
        let newer = version(5, Some(4)).unwrap_err();
        assert!(newer.contains("the receiver's polypath is older"), "{newer}");
        assert!(common(FILES, &offer(3, Some(2), Some("perf"))).is_err());
    }

    #[test]
    fn an_older_receiver_is_recognised() {
        let cause = "10.0.0.1: the file protocol has version 2, not 1".to_owned();
        let error = older(Error::Closed(CloseReason::PeerAbort { cause }));
        assert!(error.to_string().contains("is older"), "{error}");
    }

    /// Two associated endpoints of 127.0.0.1 with encryption: the client's association and the
    /// server's, and the server's certificate.
    async fn connected() -> (Association, Association, Option<Fingerprint>) {
        let bind = |listen| {
            let identity = Identity::generate().unwrap();
            Endpoint::bind(EndpointOptions {
                addresses: vec!["127.0.0.1".parse().unwrap()],
                listen,
                encryption: Some(Encryption::new(identity, Trust::Anyone)),
                ..EndpointOptions::plain()
            })
            .unwrap()
        };
        let (there, here) = (bind(true), bind(false));
        let to = ConnectOptions::new(there.port(), [there.local_addresses()[0]]);
        let (client, server) = tokio::join!(here.connect(to), there.accept());
        (client.unwrap(), server.unwrap(), there.fingerprint())
    }

    /// A stranger that takes part in the exchange gets a share, which is a random point whatever
    /// the phrase is (RFC 9382 6), and nothing to compare guesses with: the server's proof follows
    /// the stranger's own.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_stranger_gets_nothing_to_test_guesses_with() {
        let phrase: Phrase = "lusab-babad-gutih".parse().unwrap();
        let mut shares = Vec::new();
        for guess in ["lusab-babad-gutik", "another phrase"] {
            let (client, server, fingerprint) = connected().await;
            let door = Door::new(Vec::new(), Some(phrase.clone()));
            let serving = tokio::spawn(async move {
                answer(&server, FILES, &door, fingerprint, REPLY).await.map_err(|e| e.to_string())
            });
            client.send(hello(FILES, true)).await.unwrap();
            assert!(greeted(&client, FILES, REPLY).await.unwrap().needs_proof());
            let binding = Binding { service: FILES.name, opener: None, acceptor: client.peer() };
            let (exchange, share) = Exchange::open(&guess.parse().unwrap(), &binding);
            send(&client, Part::Share(share)).await.unwrap();
            let Part::Share(share) = reply(&client).await.unwrap() else { panic!("no share") };
            // The server waits for the proof.
            assert!(timeout(Duration::from_millis(200), client.recv()).await.is_err());
            let key = exchange.finish(&share).unwrap();
            send(&client, Part::Proof(key.proof(true).to_vec())).await.unwrap();
            let last = reply(&client).await.unwrap();
            assert_eq!(last, Part::Refused("the code phrase is wrong".to_owned()));
            assert!(!matches!(client.recv().await, Ok(Some(_))), "nothing more");
            assert_eq!(serving.await.unwrap().unwrap_err(), "the code phrase is wrong");
            assert_eq!(share.len(), 33);
            shares.push(share);
        }
        assert_ne!(shares[0], shares[1]);
    }
}
