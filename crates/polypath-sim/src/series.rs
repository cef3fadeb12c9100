//! The variables of every path over time, in columns.

use polypath_proto::{Association, PathState, PathView, Time};
use serde::{Deserialize, Serialize};

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
    rto: std::time::Duration,
    srtt: std::time::Duration,
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
    /// Conversation, side, series and last sample of each path.
    series: Vec<(usize, usize, PathSeries, Sample)>,
}

impl Recorder {
    /// Samples every path of an association, or without `always` only the paths that have changed.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        name: &str,
        (conversation, side): (usize, usize),
        association: &Association,
        always: bool,
    ) {
        for path in association.paths() {
            let sample = Sample::new(&path, association.peer_rwnd());
            let id = path.id.0;
            let known = self
                .series
                .iter()
                .position(|(c, s, series, _)| (*c, *s, series.path) == (conversation, side, id));
            let place = match known {
                Some(place) if !always && self.series[place].3 == sample => continue,
                Some(place) => place,
                None => {
                    let side_name = if side == 0 { "sender" } else { "receiver" };
                    let series = PathSeries {
                        association: name.to_owned(),
                        side: side_name.to_owned(),
                        path: id,
                        ..PathSeries::default()
                    };
                    self.series.push((conversation, side, series, sample));
                    self.series.len() - 1
                }
            };
            let (_, _, series, last) = &mut self.series[place];
            *last = sample;
            series.push(now, sample);
        }
    }

    pub(crate) fn finish(self) -> Vec<PathSeries> {
        let mut series = self.series;
        series.sort_by_key(|(conversation, side, series, _)| (*conversation, *side, series.path));
        series.into_iter().map(|(_, _, series, _)| series).collect()
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
