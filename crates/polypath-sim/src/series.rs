//! The variables of every path over time, in columns.

use std::time::Duration;

use polypath_proto::{PathState, PathView, Time};
use serde::{Deserialize, Serialize};

use crate::probe::{Probe, Seen};
use crate::scenario::Side;

/// One path of one association, seen from one side. All columns have the same length; the n-th
/// elements of all columns are one sample. A sample holds from its time to the next one's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathSeries {
    /// Name of the association.
    pub association: String,
    /// "sender" (the side that opened the association) or "receiver".
    pub side: String,
    /// Number of the path.
    pub path: u8,
    /// Seconds from the beginning of the run.
    pub time: Vec<f64>,
    /// Congestion window in bytes.
    pub cwnd: Vec<u64>,
    /// Slow start threshold in bytes.
    pub ssthresh: Vec<u64>,
    /// Bytes of DATA outstanding, chunk headers included.
    pub in_flight: Vec<u64>,
    /// Retransmission timeout in seconds.
    pub rto: Vec<f64>,
    /// Smoothed round-trip time in seconds; 0 before the first sample.
    pub srtt: Vec<f64>,
    /// Receive window of the peer in bytes, of the whole association.
    pub peer_rwnd: Vec<u64>,
    /// 0 unconfirmed, 1 active, 2 potentially failed, 3 inactive, 4 removed.
    pub state: Vec<u64>,
    /// Consecutive errors.
    pub error_count: Vec<u64>,
}

/// Values of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    rto: Duration,
    srtt: Duration,
    peer_rwnd: u32,
    state: u64,
    error_count: u32,
}

impl Sample {
    fn new(path: &PathView, peer_rwnd: u32) -> Self {
        Self {
            cwnd: path.window.cwnd,
            ssthresh: path.window.ssthresh,
            in_flight: path.in_flight,
            rto: path.rto,
            srtt: path.srtt.unwrap_or_default(),
            peer_rwnd,
            state: match path.state {
                PathState::Unconfirmed => 0,
                PathState::Active => 1,
                PathState::PotentiallyFailed => 2,
                PathState::Inactive => 3,
                PathState::Removed => 4,
            },
            error_count: path.error_count,
        }
    }
}

/// Records samples of all paths.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Time between samples; without one, the paths that have changed are sampled.
    interval: Option<Duration>,
    /// Number of the association, side, series and last sample of each path.
    series: Vec<(usize, Side, PathSeries, Sample)>,
}

impl Recorder {
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self { interval, series: Vec::new() }
    }

    pub(crate) fn finish(self) -> Vec<PathSeries> {
        let mut series = self.series;
        series.sort_by_key(|(number, side, series, _)| (*number, *side as u8, series.path));
        series.into_iter().map(|(_, _, series, _)| series).collect()
    }
}

impl Probe for Recorder {
    fn interval(&self) -> Option<Duration> {
        self.interval
    }

    fn sample(&mut self, now: Time, seen: &Seen<'_>) {
        // A side that never sends data needs no series.
        if seen.side == Side::Receiver && !seen.sends {
            return;
        }
        let Seen { number, name, side, association, .. } = *seen;
        let always = self.interval.is_some();
        for path in association.paths() {
            let sample = Sample::new(&path, association.peer_rwnd());
            let id = path.id.0;
            let known = self
                .series
                .iter()
                .position(|(n, s, series, _)| (*n, *s, series.path) == (number, side, id));
            let place = match known {
                Some(place) if !always && self.series[place].3 == sample => continue,
                Some(place) => place,
                None => {
                    let series = PathSeries {
                        association: name.to_owned(),
                        side: side.name().to_owned(),
                        path: id,
                        ..PathSeries::default()
                    };
                    self.series.push((number, side, series, sample));
                    self.series.len() - 1
                }
            };
            let (_, _, series, last) = &mut self.series[place];
            *last = sample;
            series.push(now, sample);
        }
    }
}

impl PathSeries {
    fn push(&mut self, now: Time, sample: Sample) {
        self.time.push(now.as_secs_f64());
        self.cwnd.push(sample.cwnd.into());
        self.ssthresh.push(sample.ssthresh.into());
        self.in_flight.push(sample.in_flight.into());
        self.rto.push(sample.rto.as_secs_f64());
        self.srtt.push(sample.srtt.as_secs_f64());
        self.peer_rwnd.push(sample.peer_rwnd.into());
        self.state.push(sample.state);
        self.error_count.push(sample.error_count.into());
    }
}
