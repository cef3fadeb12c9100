//! Virtual time, which passes only while all tasks wait.
//!
//! tokio's clock is paused, so it moves in two ways only. When every task waits, the runtime moves
//! it to the next timer, in steps of a millisecond. Between two such steps, [`drive`] moves it to
//! each event of the network.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use polypath::Time;

use crate::world::World;

/// Resolution of tokio's timers. A timer expires at the first step at or after its deadline.
const STEP: Duration = Duration::from_millis(1);

/// Wakes a task when all others wait.
#[derive(Debug, Default)]
pub(crate) struct Idle(Mutex<Option<Waker>>);

impl Idle {
    /// The runtime has nothing to do.
    pub(crate) fn tell(&self) {
        if let Some(waker) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }

    /// Ready when the runtime has nothing else to do.
    async fn wait(&self) {
        let mut asked = false;
        poll_fn(|cx| {
            let mut waker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if asked && waker.is_none() {
                return Poll::Ready(());
            }
            asked = true;
            *waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Handles the events of the network at their times, until the limit.
pub(crate) async fn drive(world: World, idle: &Idle, limit: Duration) {
    let limit = Time::ZERO + limit;
    loop {
        idle.wait().await;
        let now = world.now();
        if now >= limit {
            return;
        }
        let next = world.next_event().unwrap_or(limit).min(limit);
        let step = last_step(now);
        if next <= now {
            world.deliver(now);
        } else if next < step + STEP {
            tokio::time::advance(next.since(now)).await;
        } else if now > step {
            // The runtime moves the clock by whole steps: let it begin at one.
            tokio::time::advance((step + STEP).since(now)).await;
        } else {
            // A timer may expire first, or another packet be sent.
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(world.instant(last_step(next))) => {}
                () = poll_fn(|cx| world.poll_sent(cx)) => {}
            }
        }
    }
}

/// The last step of the timers that is not after a time.
fn last_step(time: Time) -> Time {
    let since = time.since(Time::ZERO);
    let below = since.subsec_nanos() % STEP.subsec_nanos();
    Time::ZERO + (since - Duration::from_nanos(below.into()))
}
