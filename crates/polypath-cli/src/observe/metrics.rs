//! Metrics for Prometheus: OpenMetrics 1.0 over HTTP.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polypath::{EndpointSnapshot, Path, PathState, Snapshot};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::lock;
use super::source::Sources;
use crate::text::state_key;

/// Time for a request and its response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest request, with its headers.
const LONGEST: usize = 8192;
/// Requests that are answered at the same time; others wait.
const MOST: usize = 8;
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers requests until it is dropped.
pub(super) async fn serve(listener: TcpListener, sources: Arc<Mutex<Sources>>) {
    let slots = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let sources = sources.clone();
        tokio::spawn(async move {
            // A client that is slow or has gone gets nothing.
            let _ = tokio::time::timeout(PATIENCE, answer(stream, &sources)).await;
            drop(slot);
        });
    }
}

async fn answer(mut stream: TcpStream, sources: &Mutex<Sources>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > LONGEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let target = target.split('?').next();
    let (status, body) = match (method, target) {
        (Some("GET"), Some("/metrics")) => {
            let snapshots = lock(sources).snapshots();
            ("200 OK", text(&snapshots))
        }
        (Some("GET"), _) => ("404 Not Found", "# EOF\n".to_owned()),
        _ => ("405 Method Not Allowed", "# EOF\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// A metric family of the paths: name without "polypath_path_", unit, help, value.
struct Family<T: ?Sized> {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> f64,
}

const PATHS: &[Family<Path>] = &[
    counter("sent_bytes", "bytes", "SCTP bytes sent", |path| path.stats.bytes_sent as f64),
    counter("received_bytes", "bytes", "SCTP bytes received", |path| {
        path.stats.bytes_received as f64
    }),
    counter("sent_packets", "", "Packets sent", |path| path.stats.packets_sent as f64),
    counter("received_packets", "", "Packets received", |path| path.stats.packets_received as f64),
    counter("sent_data_bytes", "bytes", "User bytes sent for the first time", |path| {
        path.stats.data_bytes_sent as f64
    }),
    counter("received_data_bytes", "bytes", "User bytes received for the first time", |path| {
        path.stats.data_bytes_received as f64
    }),
    counter("fast_retransmissions", "", "DATA chunks fast retransmitted", |path| {
        path.stats.fast_retransmissions as f64
    }),
    counter("timeout_retransmissions", "", "DATA chunks retransmitted after a timeout", |path| {
        path.stats.timeout_retransmissions as f64
    }),
    counter("timeouts", "", "Expirations of T3-rtx", |path| path.stats.timeouts as f64),
    counter("failures", "", "Changes to inactive", |path| path.stats.failures as f64),
    gauge("congestion_window_bytes", "bytes", "Congestion window", |path| {
        f64::from(path.view.window.cwnd)
    }),
    gauge("in_flight_bytes", "bytes", "Bytes of DATA chunks in flight", |path| {
        f64::from(path.view.in_flight)
    }),
    gauge(
        "smoothed_rtt_seconds",
        "seconds",
        "Smoothed round-trip time, 0 before a sample",
        |path| path.view.srtt.unwrap_or_default().as_secs_f64(),
    ),
    gauge("rto_seconds", "seconds", "Retransmission timeout", |path| path.view.rto.as_secs_f64()),
    gauge("errors", "", "Consecutive errors", |path| f64::from(path.view.error_count)),
];

const ASSOCIATIONS: &[Family<Snapshot>] = &[
    counter("sent_messages", "", "Messages accepted for sending", |one| {
        one.stats.messages_sent as f64
    }),
    counter("received_messages", "", "Messages delivered", |one| {
        one.stats.messages_received as f64
    }),
    counter("received_bytes", "bytes", "User bytes delivered", |one| {
        one.stats.bytes_received as f64
    }),
    counter(
        "blocked_seconds",
        "seconds",
        "Time without room in the peer's receive buffer",
        |one| one.stats.nanoseconds_blocked as f64 / 1e9,
    ),
    gauge("send_buffer_bytes", "bytes", "Bytes not sent or not acknowledged", |one| {
        one.buffered as f64
    }),
];

const ENDPOINTS: &[Family<EndpointSnapshot>] = &[
    counter("received_datagrams", "", "Datagrams received", |one| {
        one.stats.datagrams_received as f64
    }),
    counter("bad_checksums", "", "Packets with a wrong checksum", |one| {
        one.stats.bad_checksum as f64
    }),
    counter("out_of_the_blue", "", "Packets that belong to no association", |one| {
        one.stats.out_of_the_blue as f64
    }),
    counter("established_associations", "", "Associations established", |one| {
        one.stats.established as f64
    }),
    counter("refused_associations", "", "Associations refused", |one| one.stats.refused as f64),
];

const fn counter<T: ?Sized>(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> f64,
) -> Family<T> {
    Family { name, kind: "counter", unit, help, value }
}

const fn gauge<T: ?Sized>(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> f64,
) -> Family<T> {
    Family { name, kind: "gauge", unit, help, value }
}

/// Writes the families of one kind of object, with the labels of each object.
fn families<T>(out: &mut String, of: &str, families: &[Family<T>], all: &[(String, &T)]) {
    for Family { name, kind, unit, help, value } in families {
        let name = format!("polypath_{of}_{name}");
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(out, "# HELP {name} {help}.");
        let suffix = if *kind == "counter" { "_total" } else { "" };
        for (labels, one) in all {
            let _ = writeln!(out, "{name}{suffix}{{{labels}}} {}", value(one));
        }
    }
}

/// The metrics of these endpoints. Labels have numbers and addresses, which need no escapes.
fn text(endpoints: &[(usize, EndpointSnapshot)]) -> String {
    let mut out = String::new();
    let all: Vec<_> =
        endpoints.iter().map(|(number, one)| (format!("endpoint=\"{number}\""), one)).collect();
    families(&mut out, "endpoint", ENDPOINTS, &all);
    let mut associations = Vec::new();
    let mut paths = Vec::new();
    for (number, endpoint) in endpoints {
        for one in &endpoint.associations {
            let labels = format!("association=\"{number}.{}\"", one.association);
            for path in &one.paths {
                let (id, local, remote) = (path.view.id, path.view.local, path.view.remote);
                let more = format!("path=\"{id}\",local=\"{local}\",remote=\"{remote}\"");
                paths.push((format!("{labels},{more}"), path));
            }
            associations.push((labels, one));
        }
    }
    families(&mut out, "association", ASSOCIATIONS, &associations);
    families(&mut out, "path", PATHS, &paths);
    let name = "polypath_path_state";
    let _ = writeln!(out, "# TYPE {name} stateset\n# HELP {name} State of the path.");
    for (labels, path) in &paths {
        for state in [
            PathState::Unconfirmed,
            PathState::Active,
            PathState::PotentiallyFailed,
            PathState::Inactive,
            PathState::Removed,
        ] {
            let (word, set) = (state_key(state), u8::from(path.view.state == state));
            let _ = writeln!(out, "{name}{{{labels},{name}=\"{word}\"}} {set}");
        }
    }
    out.push_str("# EOF\n");
    out
}
