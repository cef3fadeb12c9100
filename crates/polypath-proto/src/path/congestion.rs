//! A path's part in congestion control: its recovery, delivery rate samples and pacing.

use super::Path;
use super::sampler::Sampler;
use crate::ids::Tsn;
use crate::time::Time;

/// The recovery from losses that a path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Fast recovery, until the [`CwndUpdate`](crate::policy::CwndUpdate) policy ends it.
    Fast,
    /// T3-rtx has expired: until this TSN, the highest sent before, is acknowledged.
    Timeout(Tsn),
}

impl Path {
    /// The recovery that the path is in.
    pub(crate) const fn repair(&self) -> Option<Repair> {
        self.repair
    }

    pub(crate) const fn set_repair(&mut self, repair: Option<Repair>) {
        self.repair = repair;
    }

    /// Takes delivery rate samples from now on.
    pub(crate) fn sample_delivery(&mut self) {
        self.sampler = Some(Box::default());
    }

    /// The delivery rate samples, if they are taken.
    pub(crate) fn sampler(&mut self) -> Option<&mut Box<Sampler>> {
        self.sampler.as_mut()
    }

    /// Whether the path is limited by the application, as far as that is measured.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.sampler.as_ref().is_some_and(|sampler| sampler.is_app_limited())
    }

    /// Drops the records of transmissions before the oldest one in flight, once
    /// [`oldest_is_gone`](Self::oldest_is_gone) has found it; `sent` returns when a chunk was sent.
    pub(crate) fn drop_old_records(&mut self, sent: impl Fn(Tsn) -> Option<Time>) {
        let Some(sampler) = &mut self.sampler else { return };
        match self.sent_here.front().and_then(|s| sent(s.tsn)) {
            Some(oldest) => sampler.drop_before(oldest),
            None => sampler.drop_all(),
        }
    }

    pub(super) fn drop_records(&mut self) {
        self.repair = None;
        if let Some(sampler) = &mut self.sampler {
            sampler.drop_all();
        }
    }

    /// Whether packets leave at a pacing rate.
    pub(crate) const fn is_paced(&self) -> bool {
        self.window.pacing_rate.is_some()
    }

    /// Whether the pacer allows a packet now.
    pub(crate) fn is_released(&self, now: Time) -> bool {
        !self.is_paced() || self.pacer.is_open(now)
    }

    /// When the pacer allows the next batch.
    pub(crate) const fn next_release(&self) -> Time {
        self.pacer.next()
    }

    /// Sending has stopped. Data `waits` for the window or the pacer of some path; the congestion
    /// controller is to be called at `wake`.
    pub(crate) fn pause(&mut self, now: Time, waits: bool, unused: bool, wake: Option<Time>) {
        let held = waits && self.has_room() && !self.is_released(now);
        self.pacer.pause(held);
        self.release = Time::earliest(&[held.then_some(self.pacer.next()), wake]);
        // Max.Burst may be the reason why data waits on a path that is not paced.
        let free = self.has_room() && self.is_released(now) && (self.is_paced() || !waits);
        let unused = unused && free;
        if let Some(sampler) = &mut self.sampler {
            sampler.pause(now, unused);
        }
    }

    /// An event may release data: notes whether the path could have carried more until now.
    pub(crate) fn resume(&mut self, now: Time) {
        let in_flight = self.in_flight;
        if let Some(sampler) = &mut self.sampler {
            sampler.resume(now, in_flight);
        }
    }

    /// Whether data waits for the pacer, which the window has room for.
    pub(crate) const fn awaits_pacer(&self) -> bool {
        self.pacer.is_awaited()
    }

    /// Whether the timer of the pacer or of the congestion controller runs.
    pub(crate) const fn awaits_release(&self) -> bool {
        self.release.is_some()
    }

    /// When the pacer or the congestion controller has something to do; true once for each time.
    pub(crate) fn take_release(&mut self, now: Time) -> bool {
        self.release.take_if(|release| *release <= now).is_some()
    }
}
