//! The observed endpoints of a command.

use std::time::{Duration, Instant};

use polypath::{Endpoint, EndpointSnapshot, Observer};

/// The endpoints of a command: more than one if it connects again, or has several connections.
#[derive(Debug)]
pub(super) struct Sources {
    origin: Instant,
    next: usize,
    pub(super) all: Vec<Source>,
}

/// An endpoint.
#[derive(Debug)]
pub(super) struct Source {
    /// Number of the endpoint, counted from 0.
    pub(super) number: usize,
    pub(super) observer: Observer,
    /// Time of the command at which the endpoint's clock was 0.
    pub(super) offset: Duration,
}

impl Default for Sources {
    fn default() -> Self {
        Self { origin: Instant::now(), next: 0, all: Vec::new() }
    }
}

impl Sources {
    pub(super) fn add(&mut self, endpoint: &Endpoint) {
        let age = Duration::from_nanos(endpoint.now().as_nanos());
        let offset = self.origin.elapsed().saturating_sub(age);
        let source = Source { number: self.next, observer: endpoint.observe(), offset };
        self.all.push(source);
        self.next += 1;
    }

    /// Number and snapshot of each open endpoint.
    pub(super) fn snapshots(&self) -> Vec<(usize, EndpointSnapshot)> {
        let all = self.all.iter();
        all.filter_map(|source| Some((source.number, source.observer.snapshot()?))).collect()
    }

    /// Time since the command began to be observed.
    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    pub(super) fn forget_ended(&mut self) {
        self.all.retain(|source| source.observer.snapshot().is_some());
    }
}
