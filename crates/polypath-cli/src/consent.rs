//! Consent on the side that connects: proves a code phrase, or decides whether to trust the host.

use polypath::{Association, Endpoint, Message};
use polypath_apps::consent::{Consent, Phrase, Service, greeted, hello};

use crate::code;
use crate::failure::{Failure, one_line};
use crate::reach::Reach;
use crate::reason;

/// The code phrase that a command begins with, and whether it has been proved.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    phrase: Option<Phrase>,
    /// The phrase is a shared secret: no host is trusted without its proof.
    is_secret: bool,
    proved: bool,
}

impl Credentials {
    /// Those of the command line.
    pub(crate) fn new(reach: &Reach, options: &code::CodeOptions) -> Result<Self, Failure> {
        let secret = reach.encryption.secret()?;
        let is_secret = secret.is_some();
        let phrase = match secret {
            Some(secret) => Some(secret),
            None => options.phrase()?,
        };
        Ok(Self { phrase, is_secret, proved: false })
    }

    /// The message to open an association with.
    pub(crate) fn hello(&self, service: Service) -> Message {
        // A phrase that was proved once identifies no host a second time.
        hello(service, self.phrase.is_some() && (self.is_secret || !self.proved))
    }

    /// Reaches consent over a new association, which was opened with [`hello`](Self::hello).
    pub(crate) async fn settle(
        &mut self,
        reach: &Reach,
        endpoint: &Endpoint,
        association: &Association,
        service: Service,
    ) -> Result<Consent, Failure> {
        let peer = reach.host.to_string();
        let failed = |error| reason::ended(&peer, &error);
        let is_known = self.proved || reach.is_known(association)? != Some(false);
        let greeting = greeted(association, service, reach.patience()).await.map_err(failed)?;
        let consent = if greeting.needs_proof() {
            let phrase = match &self.phrase {
                Some(phrase) => phrase.clone(),
                None => self.ask_phrase(&peer).await?,
            };
            let consent = greeting.prove(&phrase, endpoint.fingerprint()).await.map_err(failed)?;
            self.phrase = Some(phrase);
            self.proved = true;
            consent
        } else if self.is_secret {
            return Err(Failure::new(format!("{peer} does not prove the shared secret"))
                .hint("pass the same --psk-file to the program there"));
        } else {
            if !is_known {
                self.ask_trust(&peer, association).await?;
            }
            greeting.accepted()
        };
        if !self.is_secret && reach.is_known(association)?.is_some() {
            match reach.remember(association) {
                Ok(()) => {
                    if let (false, Some(fingerprint)) = (is_known, association.peer()) {
                        let short = fingerprint.short();
                        eprintln!(
                            "{peer} is new: its fingerprint, {short}, is stored in known_hosts"
                        );
                    }
                }
                // As with ssh, this host is one that the next command does not know either.
                Err(failure) => eprintln!("warning: {}", failure.reason()),
            }
        }
        Ok(consent)
    }

    async fn ask_phrase(&self, peer: &str) -> Result<Phrase, Failure> {
        if !code::has_terminal() {
            return Err(Failure::new(format!("{peer} asks for a code phrase"))
                .hint("pass the phrase that the peer prints to --code or --code-file"));
        }
        let text = code::ask(format!("code phrase printed on {peer}:")).await?;
        code::parse(&text, "the code phrase")
    }

    /// Asks whether a host that is new is the right one.
    async fn ask_trust(&self, peer: &str, association: &Association) -> Result<(), Failure> {
        let Some(fingerprint) = association.peer() else { return Ok(()) };
        let short = fingerprint.short();
        let unknown = Failure::new(format!("{peer} is not known: its fingerprint is {short}"));
        if !code::has_terminal() {
            return Err(unknown.hint(format!(
                "if {peer} prints this fingerprint itself, add --fingerprint {short}"
            )));
        }
        let question =
            format!("{peer} is not known. Does it print the fingerprint {short} itself? (yes/no)");
        let reply = code::ask(question).await?;
        match reply.to_lowercase().as_str() {
            "yes" => Ok(()),
            "no" => Err(unknown),
            other => Err(Failure::new(format!("expected yes or no, not {:?}", one_line(other)))),
        }
    }
}
