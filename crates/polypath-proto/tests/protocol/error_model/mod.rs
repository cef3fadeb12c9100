//! A model of RFC 9260 8.1 to 8.3 and 6.3.3: errors, path states, HEARTBEATs and the RTO. Its only
//! input is the packets of one host and the counts of expired T3-rtx timers and lost HEARTBEATs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use polypath_proto::wire::Chunk;
use polypath_proto::{PathId, PathState, Time};

use crate::common::*;

/// The protocol parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    pub(crate) path_max_retrans: u32,
    pub(crate) association_max_retrans: u32,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) rto_max: Duration,
    /// HEARTBEATs are also sent after timeouts.
    pub(crate) after_rto: bool,
    /// Potentially failed paths are probed at once, and acknowledgements count by RFC 7829's rule.
    pub(crate) potentially_failed: bool,
}

/// A HEARTBEAT that was sent.
struct Asked {
    at: Time,
    info: Vec<u8>,
    /// The RTO when it was sent.
    rto: Duration,
}

/// The modelled state of a path.
#[derive(Default)]
pub(crate) struct PathModel {
    pub(crate) errors: u32,
    pub(crate) rto: Duration,
    /// When the RTO was last doubled, unless it was computed anew since.
    backed_off: Option<Time>,
    /// Whether data that was sent on this path alone was acknowledged in this step.
    told: bool,
    confirmed: bool,
    asked: Vec<Asked>,
    /// Number of HEARTBEATs that are answered or precede an answered one.
    answered: usize,
    /// Timeouts, lost HEARTBEATs and RTT samples counted by the path so far.
    timeouts: u64,
    lost: u64,
    samples: u64,
    /// When DATA or a HEARTBEAT was last sent, and the smallest and largest RTO since the last
    /// HEARTBEAT.
    last_used: Time,
    rto_since: Option<(Duration, Duration)>,
}

/// An unacknowledged chunk.
#[derive(Clone, Copy)]
struct Flying {
    /// The path it was last sent on.
    path: usize,
    /// Whether it was sent on another path before.
    wandered: bool,
    /// T3-rtx expired for it: it may have arrived long ago, with only its SACK missing.
    given_up: bool,
}

/// The rules of 8.1 to 8.3, applied to host 0.
pub(crate) struct Model {
    constants: Constants,
    pub(crate) paths: Vec<PathModel>,
    /// Lower and upper bound of the association's error counter: after one of two errors at the
    /// same instant, new data may use another path.
    association: [u32; 2],
    /// The path of new data before the last step, and after it.
    current: [usize; 2],
    /// Whether several timers expired in the last step.
    several: bool,
    /// Unacknowledged chunks, by TSN.
    flying: BTreeMap<u32, Flying>,
    by_gap: BTreeSet<u32>,
    cumulative: u32,
    seen: usize,
}

impl Model {
    /// Starts from the association's current state; it must have no errors yet.
    pub(crate) fn new(net: &Net, constants: Constants) -> Self {
        let mut paths = Vec::new();
        for view in net.a(0).paths() {
            let stats = net.a(0).path_stats(view.id).unwrap();
            paths.push(PathModel {
                rto: view.rto,
                samples: stats.rtt_samples,
                confirmed: view.state != PathState::Unconfirmed,
                last_used: net.now,
                ..PathModel::default()
            });
        }
        Self {
            constants,
            paths,
            association: [0; 2],
            current: [net.a(0).current_path().index(); 2],
            several: false,
            flying: BTreeMap::new(),
            by_gap: BTreeSet::new(),
            cumulative: 0,
            seen: net.log.len(),
        }
    }

    /// 8.2: "the endpoint SHOULD mark the destination transport address as inactive" when the
    /// counter "exceeds the protocol parameter 'Path.Max.Retrans'".
    pub(crate) fn inactive(&self, path: usize) -> bool {
        self.paths[path].errors > self.constants.path_max_retrans
    }

    /// 8.1: "If the value of this counter exceeds the limit indicated in the protocol parameter
    /// 'Association.Max.Retrans', the endpoint SHOULD consider the peer endpoint unreachable".
    pub(crate) fn unreachable(&self) -> bool {
        self.association[0] > self.constants.association_max_retrans
    }

    /// The same, if errors of one instant occurred in another order.
    pub(crate) fn perhaps_unreachable(&self) -> bool {
        self.association[1] > self.constants.association_max_retrans
    }

    /// 8.2: "Each time the T3-rtx timer expires on any address, or when a HEARTBEAT sent to an idle
    /// address is not acknowledged within an RTO, the error counter of that destination transport
    /// address will be incremented." 6.3.3 (E2), 8.3: the RTO doubles, up to RTO.Max. 8.1:
    /// HEARTBEATs "observed on paths different from the path currently used for data transfer
    /// SHOULD NOT increment the association error counter".
    fn error(&mut self, now: Time, path: usize, heartbeat: bool) {
        let uses = |current: usize| !heartbeat || path == current;
        let surely = self.current.into_iter().all(uses);
        // Several timers expiring at one instant may change the current path more than once, even
        // back to the first one; the model knows only the first and the last.
        let perhaps = self.several || self.current.into_iter().any(uses);
        let p = &mut self.paths[path];
        p.errors += 1;
        p.backed_off = Some(now);
        p.rto = (p.rto * 2).min(self.constants.rto_max);
        // 5.4: a probe of an unconfirmed path does not count for the association.
        self.association[0] += u32::from(p.confirmed && surely);
        self.association[1] += u32::from(p.confirmed && perhaps);
    }

    /// 8.1: "The counter [of the association] MUST be reset each time a DATA chunk sent to that
    /// peer endpoint is acknowledged" or "a HEARTBEAT ACK chunk is received". 8.2, 8.3: the path's
    /// counter is cleared as well.
    fn answer(&mut self, path: usize) {
        self.paths[path].errors = 0;
        self.association = [0; 2];
    }

    /// Follows the last step, in the order in which the endpoint handled it.
    pub(crate) fn follow(&mut self, net: &Net) -> Result<(), String> {
        self.current[1] = net.a(0).current_path().index();
        let ours = |p: &&Sent| net.hosts[0].addresses.contains(&p.to.ip());
        // Control chunks precede the SACK in a packet (6.10).
        if let Some(packet) = net.arrival.as_ref().filter(ours) {
            for chunk in packet.parsed() {
                if let Chunk::HeartbeatAck(ack) = chunk {
                    self.heartbeat_ack(ack.info);
                }
            }
            if let Some(sack) = packet.sack() {
                self.sack(&sack);
            }
        }
        let expired = |(path, p): (usize, &PathModel)| {
            let stats = net.a(0).path_stats(PathId(path as u8)).unwrap();
            stats.timeouts - p.timeouts + stats.heartbeats_lost - p.lost
        };
        self.several = self.paths.iter().enumerate().map(expired).sum::<u64>() > 1;
        for path in 0..self.paths.len() {
            self.expiries(net, path)?;
        }
        for packet in &net.log[self.seen..] {
            if net.hosts[0].addresses.contains(&packet.from.ip()) {
                self.sent(packet)?;
            }
        }
        self.seen = net.log.len();
        self.current[0] = self.current[1];
        (0..self.paths.len()).try_for_each(|path| self.asks_idle_paths(net.now, path))
    }

    /// 8.3: a HEARTBEAT ACK counts once, however late, for the path of its HEARTBEAT.
    fn heartbeat_ack(&mut self, info: &[u8]) {
        for path in 0..self.paths.len() {
            let p = &mut self.paths[path];
            if let Some(at) = p.asked.iter().position(|asked| asked.info == info)
                && at >= p.answered
            {
                p.answered = at + 1;
                p.confirmed = true;
                self.answer(path);
            }
        }
    }

    /// Follows the path's counters and checks its RTO.
    fn expiries(&mut self, net: &Net, path: usize) -> Result<(), String> {
        let id = PathId(path as u8);
        let (stats, view) = (net.a(0).path_stats(id).unwrap(), net.a(0).path(id).unwrap());
        if self.paths[path].timeouts < stats.timeouts {
            // 6.3.3 (E3): chunks acknowledged by gap ack blocks are not outstanding.
            let given_up = self.flying.iter_mut().filter(|(n, _)| !self.by_gap.contains(n));
            given_up.filter(|(_, f)| f.path == path).for_each(|(_, f)| f.given_up = true);
        }
        // RFC 8961 4 (3): "The backoff SHOULD be removed after [...] an RTO passes without
        // detecting additional losses."
        let p = &mut self.paths[path];
        let passed = |at: Time| net.now.since(at) >= p.rto;
        if std::mem::take(&mut p.told) && p.backed_off.is_some_and(passed) {
            p.rto = view.rto;
            p.backed_off = None;
        }
        while self.paths[path].timeouts < stats.timeouts {
            self.paths[path].timeouts += 1;
            self.error(net.now, path, false);
        }
        while self.paths[path].lost < stats.heartbeats_lost {
            self.paths[path].lost += 1;
            let p = &self.paths[path];
            // "not acknowledged within an RTO".
            let due = p.asked.last().map(|asked| asked.at + asked.rto);
            if due != Some(net.now) || p.answered == p.asked.len() {
                return Err(format!("path {path}: a HEARTBEAT counts as lost, due at {due:?}"));
            }
            self.error(net.now, path, true);
        }
        let p = &mut self.paths[path];
        if p.samples < stats.rtt_samples {
            // 6.3.1: an RTT measurement computes the RTO anew.
            p.samples = stats.rtt_samples;
            p.rto = view.rto;
            p.backed_off = None;
        }
        if let Some((low, high)) = &mut p.rto_since {
            (*low, *high) = ((*low).min(p.rto), (*high).max(p.rto));
        }
        if p.rto != view.rto {
            return Err(format!("path {path}: the RTO is {:?}, not {:?}", view.rto, p.rto));
        }
        Ok(())
    }

    /// Follows a packet that host 0 sent.
    fn sent(&mut self, packet: &Sent) -> Result<(), String> {
        let path = usize::from(packet.net());
        for chunk in packet.data() {
            let before = self.flying.get(&chunk.n);
            let wandered = before.is_some_and(|f| f.wandered || f.path != path);
            self.flying.insert(chunk.n, Flying { path, wandered, given_up: false });
            self.paths[path].last_used = packet.at;
        }
        for chunk in packet.parsed() {
            let Chunk::Heartbeat(heartbeat) = chunk else { continue };
            let constants = self.constants;
            let p = &mut self.paths[path];
            // 8.3: the heartbeat period is "RTO of that destination address plus the protocol
            // parameter 'HB.interval', with jittering of +/- 50% of the RTO value".
            if let (Some(last), Some((low, _))) = (p.asked.last(), p.rto_since) {
                let earliest = last.at + constants.heartbeat_interval + low / 2;
                let anytime = constants.after_rto || constants.potentially_failed;
                if p.confirmed && !anytime && packet.at < earliest {
                    return Err(format!("path {path}: a HEARTBEAT before {earliest}"));
                }
            }
            p.asked.push(Asked { at: packet.at, info: heartbeat.info.to_vec(), rto: p.rto });
            // A HEARTBEAT after a timeout does not restart the heartbeat period, which still
            // depends on the RTO at its start.
            let anytime = constants.after_rto || constants.potentially_failed;
            let before = p.rto_since.filter(|_| anytime).map_or(p.rto, |(_, high)| high);
            p.rto_since = Some((p.rto, before.max(p.rto)));
            p.last_used = packet.at;
        }
        Ok(())
    }

    /// 8.3: "A destination transport address is considered 'idle' if no new chunk that can be used
    /// for updating path RTT [...] and no HEARTBEAT has been sent to it within the current
    /// heartbeat period": such a path gets a HEARTBEAT at the end of the next period at the latest,
    /// or when the last HEARTBEAT counts as lost.
    fn asks_idle_paths(&self, now: Time, path: usize) -> Result<(), String> {
        let p = &self.paths[path];
        let Some((_, high)) = p.rto_since else { return Ok(()) };
        let latest = p.last_used + 2 * (self.constants.heartbeat_interval + high * 3 / 2) + high;
        if self.perhaps_unreachable() || now <= latest {
            return Ok(());
        }
        Err(format!("path {path}: idle, and no HEARTBEAT since {}", p.last_used))
    }

    /// 8.2: "the endpoint SHOULD clear the error counter of the destination transport address to
    /// which the DATA chunk was last sent"; for a chunk that was sent to several addresses it may
    /// choose not to, and this endpoint does not, unless every path is inactive. RFC 7829 3.2 (9),
    /// (10): with the potentially failed state such a chunk never clears it, and a chunk that was
    /// sent on one path only does, even if T3-rtx has expired for it.
    fn sack(&mut self, sack: &SackSeen) {
        if sack.cumulative.wrapping_sub(self.cumulative) > 1 << 31 {
            return;
        }
        self.cumulative = sack.cumulative;
        let by_gap: BTreeSet<u32> = sack
            .gaps
            .iter()
            .flat_map(|g| u32::from(g.0)..=u32::from(g.1))
            .map(|o| sack.cumulative + o)
            .collect();
        let acked: Vec<u32> = self
            .flying
            .keys()
            .copied()
            .filter(|n| *n <= sack.cumulative || by_gap.contains(n))
            .filter(|n| !self.by_gap.contains(n))
            .collect();
        let dormant = (0..self.paths.len()).all(|path| self.inactive(path));
        for n in acked {
            self.association = [0; 2];
            let chunk = self.flying[&n];
            let tells = match self.constants.potentially_failed {
                true => !chunk.wandered,
                false => !chunk.given_up && (dormant || !chunk.wandered),
            };
            if tells {
                self.answer(chunk.path);
                self.paths[chunk.path].told = true;
            }
        }
        self.flying.retain(|n, _| *n > sack.cumulative);
        // 6.2.1 (D iii): a chunk that is no longer acknowledged is outstanding again.
        let taken_back = self.by_gap.difference(&by_gap);
        for n in taken_back {
            self.flying.entry(*n).and_modify(|f| f.given_up = false);
        }
        self.by_gap = by_gap;
    }
}
