//! Lines and JSON of `polypath perf`.

use std::fmt::Write;

use polypath::{Path, PathStats};
use polypath_apps::perf::{Outcome, Report};
use serde_json::{Value, json};

use crate::text;

/// What has been sent and received, in words.
pub(crate) fn both(outcome: &Outcome) -> String {
    let mut parts = Vec::new();
    if let Some((bytes, _)) = outcome.sent {
        parts.push(format!("sent {}", text::size(bytes)));
    }
    if let Some(report) = outcome.received {
        parts.push(format!("received {} in {:.2} s", text::size(report.bytes), report.seconds));
    }
    parts.join(", ")
}

/// The same path at an earlier time.
pub(crate) fn before<'a>(paths: &'a [Path], path: &Path) -> Option<&'a Path> {
    paths.iter().find(|old| old.view.id == path.view.id && old.view.remote == path.view.remote)
}

/// What an association has moved in an interval.
pub(crate) struct Interval {
    pub(crate) id: usize,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) paths: Vec<Share>,
}

/// What a path has moved in an interval.
pub(crate) struct Share {
    path: Path,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    retransmissions: u64,
    seconds: f64,
}

impl Share {
    pub(crate) fn new(path: &Path, before: Option<&Path>, seconds: f64) -> Self {
        let stats = before.map(|before| before.stats).unwrap_or_default();
        let again = |stats: &PathStats| stats.fast_retransmissions + stats.timeout_retransmissions;
        Self {
            path: *path,
            sent: path.stats.data_bytes_sent.saturating_sub(stats.data_bytes_sent),
            received: path.stats.data_bytes_received.saturating_sub(stats.data_bytes_received),
            retransmissions: again(&path.stats).saturating_sub(again(&stats)),
            seconds,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let view = &self.path.view;
        json!({
            "path": view.id.0,
            "local": view.local,
            "remote": view.remote,
            "state": text::state_key(view.state),
            "bytes_sent": self.sent,
            "bytes_received": self.received,
            "bits_per_second": bits(self.sent.max(self.received), self.seconds),
            "retransmits": self.retransmissions,
            "snd_cwnd": view.window.cwnd,
            "srtt_s": view.srtt.map(|srtt| srtt.as_secs_f64()),
        })
    }
}

pub(crate) fn bits(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

impl Interval {
    pub(crate) fn text(&self, from: f64, to: f64) -> String {
        let mut text = format!("[{:3}] {from:6.2}-{to:<6.2} s", self.id);
        let seconds = to - from;
        for (bytes, sign) in [(self.sent, ">"), (self.received, "<")] {
            if bytes > 0 {
                let rate = text::rate(bits(bytes, seconds));
                // Writing to a String cannot fail.
                let _ = write!(text, "  {sign} {:>8} {rate:>11}", text::size(bytes));
            }
        }
        for share in &self.paths {
            let rate = text::rate(bits(share.sent.max(share.received), seconds));
            let _ = write!(text, "  path {}: {rate}", share.path.view.id);
            if share.retransmissions > 0 {
                let _ = write!(text, ", {} retransmitted", share.retransmissions);
            }
        }
        text
    }

    pub(crate) fn json(&self, from: f64, to: f64) -> Value {
        json!({
            "association": self.id,
            "start": from,
            "end": to,
            "bytes_sent": self.sent,
            "bytes_received": self.received,
            "bits_per_second": bits(self.sent.max(self.received), to - from),
            "paths": self.paths.iter().map(Share::json).collect::<Vec<_>>(),
        })
    }
}

/// The result of an association.
pub(crate) struct End {
    pub(crate) id: usize,
    pub(crate) outcome: Outcome,
    pub(crate) paths: Vec<Share>,
}

impl End {
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let all: u64 = self.paths.iter().map(|path| path.sent + path.received).sum();
        for (report, verb) in [
            (self.outcome.sent.map(|(_, report)| report), "sent"),
            (self.outcome.received, "received"),
        ] {
            if let Some(report) = report {
                let rate = text::rate(bits(report.bytes, report.seconds));
                let size = text::size(report.bytes);
                let _ = writeln!(
                    text,
                    "[{:3}] {verb} {size} in {:.2} s, {rate}",
                    self.id, report.seconds
                );
            }
        }
        for share in &self.paths {
            let view = &share.path.view;
            let moved = share.sent + share.received;
            let _ = writeln!(
                text,
                "[{:3}] path {}  {} > {}  {} ({:.1} %), {} retransmitted, rtt {}  {}",
                self.id,
                view.id,
                view.local,
                view.remote,
                text::size(moved),
                100.0 * moved as f64 / all.max(1) as f64,
                share.retransmissions,
                view.srtt.map_or_else(|| "-".to_owned(), text::span),
                view.state,
            );
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let report = |report: Report| {
            json!({
                "bytes": report.bytes,
                "seconds": report.seconds,
                "bits_per_second": bits(report.bytes, report.seconds),
            })
        };
        json!({
            "association": self.id,
            "sent": self.outcome.sent.map(|(_, sent)| report(sent)),
            "received": self.outcome.received.map(report),
            "paths": self.paths.iter().map(Share::json).collect::<Vec<_>>(),
        })
    }
}

/// The sum over all associations: they begin together, and the longest time counts.
pub(crate) fn sum(ends: &[End], of: impl Fn(&End) -> Option<Report>) -> Option<Value> {
    let reports: Vec<_> = ends.iter().filter_map(of).collect();
    let seconds = reports.iter().map(|report| report.seconds).fold(0.0, f64::max);
    let bytes: u64 = reports.iter().map(|report| report.bytes).sum();
    (!reports.is_empty()).then(
        || json!({ "bytes": bytes, "seconds": seconds, "bits_per_second": bits(bytes, seconds) }),
    )
}

pub(crate) fn sums(ends: &[End]) -> String {
    let mut text = String::new();
    if ends.len() < 2 {
        return text;
    }
    let sent = sum(ends, |end| end.outcome.sent.map(|(_, report)| report));
    let received = sum(ends, |end| end.outcome.received);
    for (found, verb) in [(sent, "sent"), (received, "received")] {
        if let Some(found) = found {
            let rate = text::rate(found["bits_per_second"].as_f64().unwrap_or(0.0));
            let size = text::size(found["bytes"].as_u64().unwrap_or(0));
            let _ = writeln!(text, "[SUM] {verb} {size}, {rate}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_over_seconds() {
        assert_eq!(bits(1_000_000, 2.0), 4e6);
        assert_eq!(bits(1, 0.0), 0.0);
    }

    #[test]
    fn an_interval_is_one_line() {
        let one = Interval { id: 1, sent: 1_250_000, received: 0, paths: Vec::new() };
        assert_eq!(one.text(1.0, 2.0), "[  1]   1.00-2.00   s  >  1.25 MB 10.0 Mbit/s");
    }
}
