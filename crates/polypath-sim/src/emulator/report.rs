//! What a running emulator reports: its links, and how late datagrams leave.

use std::time::Duration;

use crate::link::LinkCounters;

/// State and counters of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Name of the link.
    pub name: String,
    /// Whether the link is up.
    pub up: bool,
    /// Counters.
    pub counters: LinkCounters,
}

/// How late datagrams left the emulator compared with the link model: the delay that the machine
/// adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuality {
    /// Number of datagrams that left.
    pub datagrams: u64,
    /// Sum of their delays.
    pub total: Duration,
    /// The longest delay.
    pub most: Duration,
}

impl Punctuality {
    /// The mean delay; `None` before the first datagram.
    pub fn mean(&self) -> Option<Duration> {
        let nanoseconds = self.total.as_nanos().checked_div(self.datagrams.into())?;
        // The mean is at most the longest delay, which fits a `Duration`.
        u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
    }

    /// Counts a datagram that left this late.
    pub(super) fn note(&mut self, late: Duration) {
        self.datagrams += 1;
        self.total += late;
        self.most = self.most.max(late);
    }
}

/// State of a running emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every link, in the order of the capture's interfaces.
    pub links: Vec<LinkReport>,
    /// How late datagrams left.
    pub punctuality: Punctuality,
}
