//! RACK-TLP (RFC 8985) on TSNs, for each path: losses by the time of sending, and tail loss probes.
//!
//! A chunk is lost if another one that was sent later on the same path has been acknowledged, and
//! the reordering window has passed since then. A chunk that was sent on another path is no
//! evidence, because paths have different delays. The names in the code are those of the RFC; a
//! "segment" is a chunk, the order of segments on a path is the order in which they were sent, TSNs
//! break ties, and a DSACK is a duplicate TSN in a SACK.
//!
//! Probes differ from the RFC in one point: they are scheduled in fast recovery as well, as RFC
//! 9002 6.2.1 does, so that a retransmission that is lost last does not wait for T3-rtx.

use std::time::Duration;

use super::{Alarm, LossDetector, PathTimes, Recovering, SackView, SentChunk};
use crate::ids::{PathId, Tsn};
use crate::policy::entry::Entry;
use crate::time::Time;
use path::{Path, Probe, Sent, Wait};

mod path;
#[cfg(test)]
mod tests;

/// See the [module](self).
pub static RACK: Entry<dyn LossDetector> = Entry::new(
    "rack",
    "sent before what was acknowledged on the path, by a reordering window; probes before \
              T3-rtx (RACK-TLP; RFC 8985)",
    |setup| Box::new(Rack { ack_delay: setup.constants.sack_delay(), paths: Vec::new() }),
);

#[derive(Debug)]
struct Rack {
    /// TLP.max_ack_delay: the local SACK.Delay, since the peer does not announce its own.
    ack_delay: Duration,
    paths: Vec<Path>,
}

impl Rack {
    fn path(&mut self, id: PathId) -> &mut Path {
        if self.paths.len() <= id.index() {
            self.paths.resize_with(id.index() + 1, Path::new);
        }
        &mut self.paths[id.index()]
    }
}

impl LossDetector for Rack {
    fn on_sack(&mut self, sack: &SackView<'_>, paths: &[PathTimes]) {
        for path in paths {
            let p = self.path(path.id);
            p.update(sack, path);
            p.adapt(sack, path);
            p.check_probe(sack, path.id);
            if path.recovering != Recovering::No {
                // RFC 8985 7.1: "Reset TLP.is_retrans and TLP.end_seq when initiating a connection,
                // fast recovery, or RTO recovery."
                p.probe = None;
            }
        }
    }

    fn horizon(&self, sack: &SackView<'_>) -> Tsn {
        // No missing reports are counted.
        sack.cumulative
    }

    fn watches_time(&self) -> bool {
        true
    }

    fn on_sent(&mut self, chunk: &SentChunk, path: &PathTimes) {
        let ack_delay = self.ack_delay;
        let p = self.path(path.id);
        if chunk.probe {
            let sent = Sent { at: chunk.sent, tsn: chunk.tsn };
            let retransmission = chunk.transmissions > 1;
            p.probe = Some(Probe { sent, retransmission, acked: false });
            p.sampled = false;
            p.wait = Wait::Nothing;
        } else if p.probe.is_some_and(|probe| probe.sent.at == chunk.sent) {
            // It was sent in the same packet.
        } else if !matches!(p.wait, Wait::Reordering(_)) {
            p.schedule_probe(path, ack_delay);
        }
    }

    fn judge(&mut self, oldest: Option<&SentChunk>, path: &PathTimes) -> bool {
        let ack_delay = self.ack_delay;
        let p = self.path(path.id);
        let lost_at = oldest.and_then(|c| p.lost_at(Sent { at: c.sent, tsn: c.tsn }, path));
        if let (Some(c), Some(at)) = (oldest, lost_at)
            && at <= path.now
        {
            p.mark(c.tsn);
            return true;
        }
        match (lost_at, p.wait) {
            (Some(at), _) => p.wait = Wait::Reordering(at),
            (None, Wait::Reordering(_)) => p.schedule_probe(path, ack_delay),
            // RFC 8985 7.2: "upon receiving an ACK that cumulatively acknowledges new data".
            _ if p.progress || oldest.is_none() => p.schedule_probe(path, ack_delay),
            _ => {}
        }
        p.progress = false;
        false
    }

    fn survives_timeout(&self, chunk: &SentChunk, path: &PathTimes) -> bool {
        // RFC 8985 6.3: "RACK only marks the segment as lost if the time elapsed since the segment
        // was transmitted is at least the sum of the recent RTT and the reordering window."
        self.paths.get(path.id.index()).is_some_and(|p| {
            let sent = Sent { at: chunk.sent, tsn: chunk.tsn };
            p.segment.is_some() && sent.at + p.rtt + p.reo_wnd(sent, path) > path.now
        })
    }

    fn on_timeout(&mut self, path: &PathTimes) {
        let p = self.path(path.id);
        p.probe = None;
        p.wait = Wait::Nothing;
        p.recovering = Recovering::Timeout;
    }

    fn deadline(&self, path: PathId) -> Option<Time> {
        match self.paths.get(path.index())?.wait {
            Wait::Nothing => None,
            Wait::Reordering(at) | Wait::Probe(at) => Some(at),
        }
    }

    fn on_deadline(&mut self, path: &PathTimes) -> Alarm {
        let p = self.path(path.id);
        if matches!(p.wait, Wait::Reordering(_)) {
            return Alarm::Judge;
        }
        p.wait = Wait::Nothing;
        // RFC 8985 7.3: "First, there is no other previous loss probe still in flight. [...]
        // Second, the sender has obtained an RTT measurement since the last loss probe transmission
        // or the start of the connection".
        if p.probe.is_none() && p.sampled { Alarm::Probe } else { Alarm::NoProbe }
    }

    fn repaired(&mut self, path: PathId) -> Option<Tsn> {
        self.path(path).repaired.take()
    }
}
