//! The event log: qlog (draft-ietf-quic-qlog-main-schema) as JSON text sequences (RFC 7464), with
//! an event schema for SCTP that docs/observe.md defines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use polypath::{Event, Observed, PathState, Snapshot, Time};
use serde_json::{Map, Value, json};

use super::Vantage;
use super::date::rfc3339;
use super::source::Sources;
use crate::failure::{Failure, system_text};
use crate::text::state_key;

/// Schema of the events.
const SCHEMA: &str = "https://github.com/polypath/polypath/blob/main/docs/observe.md#sctp";
/// Record separator before each JSON text (RFC 7464 2.2).
const SEPARATOR: u8 = 0x1e;

/// A log that is being written.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// `None` after an error.
    out: Option<BufWriter<File>>,
    /// The last sample of each path: endpoint, association, path.
    last: BTreeMap<(usize, u64, u8), Sample>,
}

/// Counters of a path at the time of its last sample.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    sent: u64,
    received: u64,
    /// The state and the counters that a sample is repeated for.
    key: (PathState, u32, u64, u64),
}

/// Milliseconds, the unit of qlog's times.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn since(offset: Duration, at: Time) -> Duration {
    offset + Duration::from_nanos(at.as_nanos())
}

impl Log {
    pub(super) fn create(path: &Path, vantage: Vantage) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| Failure::file("create", path, &error))?;
        let out = Some(BufWriter::new(file));
        let mut log = Self { path: path.to_owned(), out, last: BTreeMap::new() };
        log.record(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": "polypath",
            "trace": {
                "vantage_point": {
                    "name": concat!("polypath ", env!("CARGO_PKG_VERSION")),
                    "type": match vantage { Vantage::Client => "client", Vantage::Server => "server" },
                },
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": {
                        "clock_type": "monotonic",
                        "epoch": "unknown",
                        "wall_clock_time": rfc3339(SystemTime::now()),
                    },
                },
                "event_schemas": [SCHEMA],
            },
        }));
        log.flush();
        Ok(log)
    }

    /// Writes the events since the last call, and a sample of each path that has changed.
    pub(super) fn sample(&mut self, sources: &mut Sources) {
        let now = sources.now();
        for source in &mut sources.all {
            let (events, missed) = source.observer.events();
            for event in &events {
                let at = since(source.offset, event.at);
                if let Some(last) = &event.last {
                    self.paths(at, source.number, last);
                }
                self.event(source.offset, source.number, event);
            }
            if missed > 0 {
                let data = json!({ "count": missed });
                self.write(now, "sctp:events_missed", &source.number.to_string(), data);
            }
            if let Some(snapshot) = source.observer.snapshot() {
                let at = since(source.offset, snapshot.at);
                for association in &snapshot.associations {
                    self.paths(at, source.number, association);
                }
            }
        }
        self.flush();
    }

    /// Writes a sample of each path of an association.
    fn paths(&mut self, at: Duration, endpoint: usize, association: &Snapshot) {
        let group = format!("{endpoint}.{}", association.association);
        for path in &association.paths {
            let (view, stats) = (&path.view, &path.stats);
            let (sent, received) = (stats.bytes_sent, stats.bytes_received);
            let key = (view.state, view.window.cwnd, stats.packets_sent, stats.packets_received);
            let sample = Sample { at, sent, received, key };
            let before = self.last.insert((endpoint, association.association.0, view.id.0), sample);
            if before.is_some_and(|before| before.key == key) {
                continue;
            }
            let mut data = Map::new();
            let mut put = |name: &str, value: Value| data.insert(name.to_owned(), value);
            put("path", view.id.0.into());
            put("state", state_key(view.state).into());
            put("congestion_window", view.window.cwnd.into());
            put("bytes_in_flight", view.in_flight.into());
            put("retransmission_timeout", milliseconds(view.rto).into());
            put("error_count", view.error_count.into());
            put("bytes_sent", sent.into());
            put("bytes_received", received.into());
            put("packets_sent", stats.packets_sent.into());
            put("packets_received", stats.packets_received.into());
            put("data_bytes_sent", stats.data_bytes_sent.into());
            put("data_bytes_received", stats.data_bytes_received.into());
            put("fast_retransmissions", stats.fast_retransmissions.into());
            put("timeout_retransmissions", stats.timeout_retransmissions.into());
            put("timeouts", stats.timeouts.into());
            if view.window.ssthresh < u32::MAX {
                put("ssthresh", view.window.ssthresh.into());
            }
            if let Some(rate) = view.window.pacing_rate {
                put("pacing_rate", rate.saturating_mul(8).into());
            }
            if let Some(srtt) = view.srtt {
                put("smoothed_rtt", milliseconds(srtt).into());
            }
            if let Some(rttvar) = view.rttvar {
                put("rtt_variance", milliseconds(rttvar).into());
            }
            if let Some(before) = before {
                let seconds = (at.saturating_sub(before.at)).as_secs_f64();
                if seconds > 0.0 {
                    let rate = |bytes: u64| ((bytes * 8) as f64 / seconds).round();
                    put("sending_rate", rate(sent.saturating_sub(before.sent)).into());
                    put("receiving_rate", rate(received.saturating_sub(before.received)).into());
                }
            }
            self.write(at, "sctp:metrics_updated", &group, Value::Object(data));
        }
    }

    fn event(&mut self, offset: Duration, endpoint: usize, observed: &Observed) {
        let group = format!("{endpoint}.{}", observed.association);
        let mut at = observed.at;
        let (name, data) = match &observed.event {
            Event::Established { inbound } => {
                ("association_established", json!({ "inbound": inbound }))
            }
            Event::PathAdded { path } => ("path_added", json!({ "path": path.0 })),
            Event::PathState { path, from, to, at: since } => {
                at = *since;
                let data =
                    json!({ "path": path.0, "old": state_key(*from), "new": state_key(*to) });
                ("path_state_updated", data)
            }
            Event::CurrentPath { path, at: since } => {
                at = *since;
                ("current_path_updated", json!({ "path": path.0 }))
            }
            Event::PrimaryChanged { path } => ("primary_path_updated", json!({ "path": path.0 })),
            Event::PathRefused { path } => ("path_refused", json!({ "path": path.0 })),
            Event::Restarted => ("association_restarted", json!({})),
            Event::SendFailed { stream, bytes, sent, .. } => {
                let data = json!({ "stream": stream.0, "bytes": bytes, "sent": sent });
                ("message_abandoned", data)
            }
            Event::PeerError { cause, .. } => ("peer_error", json!({ "cause": cause })),
            Event::PeerShutdown => ("peer_shutdown", json!({})),
            Event::Closed(reason) => {
                let graceful = reason.is_graceful();
                let data = json!({ "graceful": graceful, "reason": reason.to_string() });
                ("association_closed", data)
            }
            // Changes of addresses and streams, in the words of the library.
            other => ("other", json!({ "event": format!("{other:?}") })),
        };
        self.write(since(offset, at), &format!("sctp:{name}"), &group, data);
    }

    fn write(&mut self, at: Duration, name: &str, group: &str, data: Value) {
        let time = milliseconds(at);
        self.record(&json!({ "time": time, "name": name, "group_id": group, "data": data }));
    }

    fn record(&mut self, record: &Value) {
        self.attempt(|out| {
            out.write_all(&[SEPARATOR])?;
            serde_json::to_writer(&mut *out, record)?;
            out.write_all(b"\n")
        });
    }

    fn flush(&mut self) {
        self.attempt(Write::flush);
    }

    /// Writes, unless that has failed before: the transfer is worth more than its log.
    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let Some(out) = &mut self.out
            && let Err(error) = write(out)
        {
            let (path, why) = (self.path.display(), system_text(&error));
            eprintln!("cannot write {path}: {why}; the log ends here");
            self.out = None;
        }
    }
}
