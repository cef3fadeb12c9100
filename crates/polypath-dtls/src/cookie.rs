//! Cookies: proof of a client's address without keeping state for the client.
//!
//! `dimpl` makes cookies for one connection each, from a secret of that connection and the client's
//! random number. Here, a cookie's key is derived from a secret of the whole layer, the
//! ClientHello, the addresses and the time, so that cookies outlive the object that wrote the
//! cookie request. `dimpl` requests the MAC from its provider, which uses the key that
//! [`Provider::with_cookie_key`](crate::crypto::Provider::with_cookie_key) has set.

use std::time::Duration;

use polypath_proto::{FourTuple, Time};
use ring::hmac;

use crate::hello::ClientHello;

/// Minimum lifetime of a cookie; the maximum is twice as long.
const LIFE: Duration = Duration::from_secs(60);

/// The layer's secret, from which all cookie keys are derived.
#[derive(Clone, Debug)]
pub(crate) struct Baker(hmac::Key);

/// The cookie key of one client, for a limited time.
#[derive(Clone, Debug)]
pub(crate) struct Recipe(pub(crate) hmac::Key);

impl Baker {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Cookie key for a client that sends this ClientHello on this path.
    pub(crate) fn recipe(&self, now: Time, way: &FourTuple, hello: &ClientHello<'_>) -> Recipe {
        self.of(now.as_nanos() / LIFE.as_nanos() as u64, way, hello.bound())
    }

    /// The cookie key of a second ClientHello with a valid cookie, and the first ClientHello.
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
