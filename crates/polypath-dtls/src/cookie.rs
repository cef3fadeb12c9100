//! Cookies: the proof that a client is where it says, without anything being kept of it.
//!
//! `dimpl` makes them for one connection each, from a secret of that connection and the client's random
//! number. Here they are made from a secret of the whole layer, the hello, the addresses and the time, so
//! that they outlive the object that wrote the request. `dimpl` asks its provider for the MAC, which finds
//! the key in [`with`]'s keeping.

use std::cell::RefCell;
use std::time::Duration;

use polypath_proto::{FourTuple, Time};
use ring::hmac;

use crate::hello::ClientHello;

/// How long a cookie is good for, at least; twice as long at most.
const LIFE: Duration = Duration::from_secs(60);

thread_local! {
    /// The key of the cookie that is being made or tried.
    static KEY: RefCell<Option<hmac::Key>> = const { RefCell::new(None) };
}

/// The MAC that `dimpl` asks for as a cookie.
pub(crate) fn mac(key: &[u8], data: &[u8]) -> hmac::Tag {
    KEY.with_borrow(|ours| match ours {
        Some(ours) => hmac::sign(ours, data),
        None => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data),
    })
}

/// What all cookies of a layer are made with.
#[derive(Clone, Debug)]
pub(crate) struct Baker(hmac::Key);

/// What the cookies of one client are made with, for a while.
#[derive(Clone, Debug)]
pub(crate) struct Recipe(hmac::Key);

impl Baker {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// What who says this at the other end of this way gets.
    pub(crate) fn recipe(&self, now: Time, way: &FourTuple, hello: &ClientHello<'_>) -> Recipe {
        self.of(now.as_nanos() / LIFE.as_nanos() as u64, way, hello.bound())
    }

    /// The recipe that the cookie of a second hello was made by, if it is fresh; and the first hello.
    pub(crate) fn recognise(
        &self,
        now: Time,
        way: &FourTuple,
        second: &ClientHello<'_>,
    ) -> Option<(Recipe, Vec<u8>)> {
        let cookie = second.cookie()?;
        let current = now.as_nanos() / LIFE.as_nanos() as u64;
        for first in second.firsts() {
            let message = ClientHello::parse(&first)?.bound();
            for period in [Some(current), current.checked_sub(1)].into_iter().flatten() {
                let recipe = self.of(period, way, message);
                if hmac::verify(&recipe.0, &second.random, cookie).is_ok() {
                    return Some((recipe, first));
                }
            }
        }
        None
    }

    fn of(&self, period: u64, way: &FourTuple, message: &[u8]) -> Recipe {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{period} {} {}\n", way.local, way.remote).as_bytes());
        context.update(message);
        Recipe(hmac::Key::new(hmac::HMAC_SHA256, context.sign().as_ref()))
    }
}

/// Has cookies made by this recipe while `f` runs.
pub(crate) fn with<R>(recipe: &Recipe, f: impl FnOnce() -> R) -> R {
    KEY.set(Some(recipe.0.clone()));
    let result = f();
    KEY.set(None);
    result
}
