//! Which peers the accepting side lets in, and how often a phrase may be tried.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polypath::{Fingerprint, KnownFingerprint};

use crate::consent::phrase::Phrase;

/// Wrong attempts until a pause.
const ATTEMPTS: u32 = 3;
/// The first pause; each further one is twice as long, up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(3600);
/// Maximum number of certificates that have proved a phrase and are kept.
const MOST_ADMITTED: usize = 4096;

/// Which peers are let in: known ones, and those that prove a phrase.
#[derive(Debug)]
pub struct Door {
    anyone: bool,
    known: Vec<KnownFingerprint>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phrase: Option<Phrase>,
    /// Whether the phrase is spent by the first peer that proves it.
    once: bool,
    spent: bool,
    failures: u32,
    pauses: u32,
    closed_until: Option<Instant>,
    /// Certificates of the peers that have proved a phrase: they may continue after a loss.
    admitted: BTreeSet<Fingerprint>,
}

/// What a peer needs to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: the peer is known, or anyone is let in.
    Nothing,
    /// A proof of this phrase.
    Proof(Phrase),
    /// The peer is not let in, for this reason.
    Refused(String),
}

impl Door {
    /// Lets in known peers, and those that prove `phrase`.
    pub fn new(known: Vec<KnownFingerprint>, phrase: Option<Phrase>) -> Self {
        Self {
            anyone: false,
            known,
            state: Mutex::new(State {
                phrase,
                once: false,
                spent: false,
                failures: 0,
                pauses: 0,
                closed_until: None,
                admitted: BTreeSet::new(),
            }),
        }
    }

    /// Lets in anyone.
    pub fn open() -> Self {
        Self { anyone: true, ..Self::new(Vec::new(), None) }
    }

    /// The first peer that proves the phrase spends it.
    #[must_use]
    pub fn once(self) -> Self {
        self.lock().once = true;
        self
    }

    /// Replaces a spent phrase; false if the phrase is not spent.
    pub fn renew(&self, phrase: &Phrase) -> bool {
        let mut state = self.lock();
        let spent = std::mem::replace(&mut state.spent, false);
        if spent {
            state.phrase = Some(phrase.clone());
        }
        spent
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the state valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a peer with this certificate needs. `offers` is whether it has a phrase itself: it may
    /// demand the proof to recognise this side.
    pub fn needs(&self, peer: Option<Fingerprint>, offers: bool, now: Instant) -> Needs {
        let state = self.lock();
        let admitted = peer.is_some_and(|peer| state.admitted.contains(&peer));
        if admitted && state.once {
            // The phrase that this peer has proved is spent, and another one may have replaced it.
            return Needs::Nothing;
        }
        let known = admitted
            || peer.is_some_and(|peer| self.known.iter().any(|known| known.matches(&peer)));
        let free = known || self.anyone;
        match &state.phrase {
            Some(phrase) if (offers || !free) && !(state.once && state.spent) => {
                match state.paused(now) {
                    Some(_) if free => Needs::Nothing,
                    Some(pause) => Needs::Refused(pause_reason(pause)),
                    None => Needs::Proof(phrase.clone()),
                }
            }
            _ if free => Needs::Nothing,
            Some(_) => Needs::Refused("the code phrase has already been used".to_owned()),
            None => Needs::Refused("the sender's certificate is not known here".to_owned()),
        }
    }

    /// Judges a proof: counts a failure, or lets the peer in.
    ///
    /// # Errors
    ///
    /// The proof is wrong, or no attempt is accepted at the moment; the text is the reason.
    pub fn judge(
        &self,
        peer: Option<Fingerprint>,
        now: Instant,
        is_right: impl FnOnce() -> bool,
    ) -> Result<(), String> {
        let mut state = self.lock();
        // Attempts that were begun at the same time are judged one after the other.
        if let Some(pause) = state.paused(now) {
            return Err(pause_reason(pause));
        }
        if state.once && state.spent {
            return Err("the code phrase has already been used".to_owned());
        }
        if is_right() {
            state.failures = 0;
            state.spent = true;
            if let Some(peer) = peer.filter(|_| state.admitted.len() < MOST_ADMITTED) {
                state.admitted.insert(peer);
            }
            return Ok(());
        }
        state.failures += 1;
        if state.failures >= ATTEMPTS {
            state.failures = 0;
            let pause = PAUSE.saturating_mul(1 << state.pauses.min(16)).min(LONGEST);
            state.pauses += 1;
            state.closed_until = now.checked_add(pause);
        }
        Err("the code phrase is wrong".to_owned())
    }
}

impl State {
    /// Time until the next attempt is accepted.
    fn paused(&self, now: Instant) -> Option<Duration> {
        let left = self.closed_until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

fn pause_reason(left: Duration) -> String {
    format!("too many wrong code phrases: wait {} s", left.as_secs() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(name: &str) -> Option<Fingerprint> {
        Some(Fingerprint::of(name.as_bytes()))
    }

    fn door() -> Door {
        let known = Fingerprint::of(b"known").into();
        Door::new(vec![known], Some("correct horse".parse().unwrap()))
    }

    #[test]
    fn strangers_need_a_proof_and_known_peers_do_not() {
        let (door, now) = (door(), Instant::now());
        assert_eq!(door.needs(peer("known"), false, now), Needs::Nothing);
        let proof = Needs::Proof("correct horse".parse().unwrap());
        assert_eq!(door.needs(peer("other"), false, now), proof);
        assert_eq!(door.needs(None, false, now), proof);
        // A known peer that has a phrase may use it to recognise this side.
        assert_eq!(door.needs(peer("known"), true, now), proof);
        let closed = Door::new(Vec::new(), None);
        assert!(matches!(closed.needs(peer("known"), true, now), Needs::Refused(_)));
        assert_eq!(Door::open().needs(None, true, now), Needs::Nothing);
    }

    #[test]
    fn a_phrase_that_was_proved_once_is_spent() {
        let (door, now) = (door().once(), Instant::now());
        door.judge(peer("first"), now, || true).unwrap();
        assert!(matches!(door.needs(peer("second"), true, now), Needs::Refused(_)));
        assert!(door.judge(peer("second"), now, || true).is_err());
        // The first one may continue after a loss, even with the phrase on its command line.
        assert_eq!(door.needs(peer("first"), true, now), Needs::Nothing);
        assert!(door.renew(&"correct house".parse().unwrap()));
        assert!(!door.renew(&"correct mouse".parse().unwrap()));
        assert_eq!(door.needs(peer("first"), true, now), Needs::Nothing);
        assert!(matches!(door.needs(peer("second"), true, now), Needs::Proof(_)));
    }

    #[test]
    fn three_wrong_attempts_bring_a_pause_that_grows() {
        let (door, mut now) = (door(), Instant::now());
        for pause in [30, 60, 120] {
            for _ in 0..3 {
                assert_eq!(
                    door.judge(None, now, || false).unwrap_err(),
                    "the code phrase is wrong"
                );
            }
            // Even the right phrase is not looked at.
            let early = now + Duration::from_secs(pause - 1);
            assert!(door.judge(None, early, || true).unwrap_err().contains("wait 2 s"));
            assert!(matches!(door.needs(None, true, early), Needs::Refused(_)));
            assert_eq!(door.needs(peer("known"), false, early), Needs::Nothing);
            now += Duration::from_secs(pause);
        }
        assert!(door.judge(None, now, || true).is_ok());
    }
}
