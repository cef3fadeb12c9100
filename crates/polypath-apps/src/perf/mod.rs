//! Measurement: two sides send each other bytes for a while and count what arrives.
//!
//! After consent, the client sends a [`Request`]. The sides that send put messages on stream 1,
//! then an end with the number of bytes; the other side answers with a [`Report`] on stream 0.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use polypath::{Association, CloseReason, Message, Ppid, Received, StreamId};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::accept::Peer;
use crate::consent::Service;
use crate::error::Error;
use crate::pace::Pace;
use crate::wire::{json, parse, whole};

/// The measurement protocol.
pub const PERF: Service = Service { name: "perf", version: 1, oldest: 1 };

const CONTROL: StreamId = StreamId(0);
const DATA: StreamId = StreamId(1);
const REQUEST: Ppid = Ppid(0x7070_0001);
const LOAD: Ppid = Ppid(0x7070_0002);
const END: Ppid = Ppid(0x7070_0003);
const REPORT: Ppid = Ppid(0x7070_0004);

/// Largest message in bytes.
pub const MOST_MESSAGE: u32 = 1 << 20;
/// Longest measurement that a server takes part in.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Time after the end of a measurement for what is still on its way.
const DRAIN: Duration = Duration::from_secs(60);

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The client sends.
    pub up: bool,
    /// The server sends.
    pub down: bool,
    /// How long is sent, in seconds; `None` until `bytes` are sent.
    pub seconds: Option<f64>,
    /// How many bytes are sent; `None` until the time is over.
    pub bytes: Option<u64>,
    /// Bytes of a message.
    pub message: u32,
    /// Most bytes per second; `None` for as many as possible.
    pub rate: Option<u64>,
}

/// What has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Bytes of messages.
    pub bytes: u64,
    /// From the first to the last of them, in seconds.
    pub seconds: f64,
}

/// Counters of a running measurement.
#[derive(Debug, Default)]
pub struct Load {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Load {
    /// Bytes given to the association.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes taken from it.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// Result of a measurement on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Bytes that this side has sent, and the peer's report about them.
    pub sent: Option<(u64, Report)>,
    /// What has arrived at this side.
    pub received: Option<Report>,
}

impl Request {
    fn check(&self) -> Result<(), Error> {
        let seconds = self.seconds.unwrap_or(0.0);
        let problem = if !(self.up || self.down) {
            "it has no direction"
        } else if self.seconds.is_none() && self.bytes.is_none() {
            "it has no end"
        } else if !(0.0..=LONGEST.as_secs_f64()).contains(&seconds) {
            "it takes too long"
        } else if !(1..=MOST_MESSAGE).contains(&self.message) {
            "its messages are too large"
        } else {
            return Ok(());
        };
        Err(Error::Protocol(format!("the measurement was refused: {problem}")))
    }

    /// When to stop.
    fn end(&self, now: Instant) -> Instant {
        let seconds = self.seconds.map_or(LONGEST, Duration::from_secs_f64);
        now + seconds.min(LONGEST)
    }
}

/// Measures as the client, after consent.
///
/// # Errors
///
/// The request is not possible, or the association ended.
pub async fn client(
    association: &Association,
    request: &Request,
    load: &Load,
) -> Result<Outcome, Error> {
    request.check()?;
    let message = Message { ppid: REQUEST, ..Message::new(CONTROL, json(request)) };
    association.send(message).await?;
    measure(association, request, request.up, request.down, load).await
}

/// Measures as the server what a peer requests.
///
/// # Errors
///
/// The peer requests nothing in time or what is not possible, or the association ended.
pub async fn server(peer: &Peer, load: &Load) -> Result<Outcome, Error> {
    let association = &peer.association;
    let silent = || Error::Local("the client connected and sent nothing".to_owned());
    let first = timeout(peer.patience, next(association)).await.map_err(|_| silent())??;
    if (first.stream, first.ppid) != (CONTROL, REQUEST) {
        return Err(unexpected());
    }
    let request: Request = parse(&first.payload)?;
    request.check()?;
    let outcome = measure(association, &request, request.down, request.up, load).await?;
    // The client has its reports and closes.
    let _ = timeout(DRAIN, association.closed()).await;
    Ok(outcome)
}

/// Sends and receives at the same time.
async fn measure(
    association: &Association,
    request: &Request,
    sends: bool,
    receives: bool,
    load: &Load,
) -> Result<Outcome, Error> {
    let (reports, mut report) = watch::channel(None);
    let sending = async {
        if !sends {
            return Ok(None);
        }
        let sent = send_all(association, request, load).await?;
        match timeout(DRAIN, report.wait_for(Option::is_some)).await {
            Ok(Ok(report)) => Ok(report.map(|report| (sent, report))),
            _ => Err(Error::Local("the peer did not report what it received".to_owned())),
        }
    };
    let receiving = receive_all(association, sends, receives, request, load, &reports);
    let (sent, received) = tokio::try_join!(sending, receiving)?;
    Ok(Outcome { sent, received })
}

async fn send_all(association: &Association, request: &Request, load: &Load) -> Result<u64, Error> {
    let end = request.end(Instant::now());
    let mut pace = Pace::new(request.rate);
    let payload = Bytes::from(vec![0; request.message as usize]);
    let most = request.bytes.unwrap_or(u64::MAX);
    let mut sent = 0;
    while sent < most && Instant::now() < end {
        let size = (most - sent).min(u64::from(request.message));
        let part = payload.slice(..size as usize);
        pace.wait(part.len()).await;
        let message = Message { ppid: LOAD, ..Message::new(DATA, part) };
        match timeout_at(end, association.send(message)).await {
            Ok(done) => done?,
            Err(_) => break,
        }
        sent += size;
        load.sent.fetch_add(size, Ordering::Relaxed);
    }
    let message = Message { ppid: END, ..Message::new(DATA, json(&sent)) };
    association.send(message).await?;
    Ok(sent)
}

/// Counts what arrives, until the end of the peer's data and the report about this side's.
async fn receive_all(
    association: &Association,
    mut awaits_report: bool,
    receives: bool,
    request: &Request,
    load: &Load,
    reports: &watch::Sender<Option<Report>>,
) -> Result<Option<Report>, Error> {
    let late = request.end(Instant::now()) + DRAIN;
    let mut awaits_data = receives;
    let mut found = Report::default();
    let mut first = None;
    while awaits_data || awaits_report {
        let received = timeout_at(late, next(association)).await;
        let late = || Error::Local("the peer did not end the measurement".to_owned());
        let received = received.map_err(|_| late())??;
        match (received.stream, received.ppid) {
            (DATA, LOAD) if awaits_data => {
                let now = Instant::now();
                let begin = *first.get_or_insert(now);
                found.bytes += received.payload.len() as u64;
                found.seconds = now.duration_since(begin).as_secs_f64();
                load.received.store(found.bytes, Ordering::Relaxed);
            }
            (DATA, END) if awaits_data => {
                awaits_data = false;
                let message = Message { ppid: REPORT, ..Message::new(CONTROL, json(&found)) };
                association.send(message).await?;
            }
            (CONTROL, REPORT) if awaits_report => {
                awaits_report = false;
                reports.send_replace(Some(parse(&received.payload)?));
            }
            _ => return Err(unexpected()),
        }
    }
    Ok(receives.then_some(found))
}

async fn next(association: &Association) -> Result<Received, Error> {
    match association.recv().await {
        Ok(Some(received)) => whole(received, Some(LOAD)),
        Ok(None) => Err(Error::Closed(CloseReason::Graceful)),
        Err(error) => Err(error.into()),
    }
}

fn unexpected() -> Error {
    Error::Protocol("the peer violated the measurement protocol".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request { up: true, down: false, seconds: Some(1.0), bytes: None, message: 1, rate: None }
    }

    #[test]
    fn impossible_requests_are_refused() {
        assert!(request().check().is_ok());
        for wrong in [
            Request { up: false, ..request() },
            Request { seconds: None, ..request() },
            Request { seconds: Some(f64::NAN), ..request() },
            Request { seconds: Some(-1.0), ..request() },
            Request { seconds: Some(1e9), ..request() },
            Request { message: 0, ..request() },
            Request { message: MOST_MESSAGE + 1, ..request() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
