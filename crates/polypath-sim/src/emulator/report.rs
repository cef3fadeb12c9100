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
    /// Delays by the queue.
    pub queueing: Queueing,
}

/// How long the accepted packets of a link wait before they are transmitted, and for how long their
/// impairments hold them up; transmission and propagation are not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queueing {
    /// Number of accepted packets.
    pub packets: u64,
    /// Sum of their delays.
    pub total: Duration,
    /// The longest delay.
    pub most: Duration,
}

impl Queueing {
    /// Counts a packet that waits for this long.
    pub(super) fn note(&mut self, wait: Duration) {
        self.packets += 1;
        self.total += wait;
        self.most = self.most.max(wait);
    }
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
    /// Number of datagrams that left more than a millisecond late.
    pub over_millisecond: u64,
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
        self.over_millisecond += u64::from(late > Duration::from_millis(1));
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
