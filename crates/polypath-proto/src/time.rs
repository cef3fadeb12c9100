//! Instants: the core has no clock, the driver hands in the time.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant in nanoseconds since an origin that the driver chooses (simulated or real).
///
/// Only differences are meaningful. 2^64 ns are 584 years, so sums never saturate in practice.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The driver's origin.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that a run reaches.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// The instant `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, for output and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The earliest of these instants; a timer set to [`FAR_FUTURE`](Self::FAR_FUTURE) does not
    /// run.
    pub(crate) fn earliest(timers: &[Option<Self>]) -> Option<Self> {
        let first =
            timers.iter().fold(Self::FAR_FUTURE, |first, &at| at.unwrap_or(first).min(first));
        (first != Self::FAR_FUTURE).then_some(first)
    }

    /// The time that has passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
