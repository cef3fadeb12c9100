//! The retransmission flag: one bit in DATA marks a retransmitted chunk, and one bit in SACK that a
//! packet with such a chunk caused the SACK.
//!
//! Caro 2006 (retransmission policies), 4.2: "One alternative solution, incurring less packet
//! overhead, may be to use flag(s) in the data and sack headers to signal whether the data/sack is
//! for an original transmission or retransmission." What makes it unambiguous:
//!
//! - The receiver acknowledges a packet with a retransmission at once, so a SACK with the flag has
//!   a single cause and is not delayed.
//! - A chunk sent once gives a sample as by Karn's rule: only one transmission of it exists.
//! - A chunk sent exactly twice gives a sample if the SACK that newly acknowledges it has the flag:
//!   a retransmission caused that SACK, not the original. One bit does not distinguish one
//!   retransmission from another, so a chunk sent three times gives no sample.
//! - The retransmission that caused the SACK may be that of another chunk. A SACK acknowledges the
//!   chunks that caused it, so it can only be a chunk acknowledged by now. Therefore no sample is
//!   taken if the SACK newly acknowledges retransmissions sent at different times, nor while a
//!   spurious copy of a chunk acknowledged earlier may be in flight. A retransmission that was not
//!   matched with its SACK in this way counts as such a copy for the time of the path's RTO without
//!   back-off, SRTT + 4 RTTVAR. (With back-off the RTO would perpetuate itself: it is outdated for
//!   lack of samples.)
//!
//! One measurement each round trip and path (RFC 9260 6.3.1, C4).

use std::time::Duration;

use super::{AckedChunk, RttSampling, SackCause};
use crate::extension::Extension;
use crate::ids::PathId;
use crate::path::{PathView, PathsView};
use crate::policy::entry::{Entry, Needs};
use crate::time::Time;

/// See the [module](self).
pub static RETRANSMISSION_FLAG: Entry<dyn RttSampling> = Entry::<dyn RttSampling>::new(
    "retransmission-flag",
    "a retransmitted chunk too, if a flag in the SACK reports that the retransmission caused \
              it; both sides (Caro 2006, 4.2)",
    |_| Box::new(RetransmissionFlag { stray_until: Time::ZERO }),
)
.with_needs(Needs::NONE.extension(Extension::RetransmissionFlag));

#[derive(Debug)]
struct RetransmissionFlag {
    /// Until this time a spurious retransmission of a chunk acknowledged earlier may cause a SACK.
    stray_until: Time,
}

impl RttSampling for RetransmissionFlag {
    fn may_start(&self, transmissions: u32) -> bool {
        transmissions <= 2
    }

    fn samples(
        &mut self,
        now: Time,
        cause: &SackCause,
        acked: &[AckedChunk],
        paths: PathsView<'_>,
        samples: &mut Vec<(PathId, Duration)>,
    ) {
        let mut again = acked.iter().filter(|c| c.transmissions > 1);
        let first = again.next();
        let alike = again.all(|c| first.is_some_and(|f| f.sent == c.sent));
        let told = cause.retransmission && alike && now >= self.stray_until;
        for chunk in acked.iter().filter(|c| c.measured) {
            if chunk.transmissions == 1 || (chunk.transmissions == 2 && told) {
                samples.push((chunk.path, now.since(chunk.sent)));
            }
        }
        // Copies may remain in flight unless the SACK matches the only retransmission of a single
        // chunk: chunks sent at the same time may have been in different packets.
        let again = || acked.iter().filter(|c| c.transmissions > 1);
        let settled = told && again().count() == 1 && again().all(|c| c.transmissions == 2);
        if !settled {
            for chunk in again() {
                let until = chunk.sent + answered_within(&paths.path(chunk.path));
                self.stray_until = self.stray_until.max(until);
            }
        }
    }
}

/// The path's RTO without back-off, once there is a sample.
fn answered_within(path: &PathView) -> Duration {
    match (path.srtt, path.rttvar) {
        (Some(srtt), Some(rttvar)) => srtt + 4 * rttvar,
        _ => path.rto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const MS: fn(u64) -> Time = |ms| Time::from_nanos(ms * 1_000_000);
    const FLAG: SackCause = SackCause { sent: None, retransmission: true };

    fn chunk(sent_ms: u64, transmissions: u32) -> AckedChunk {
        AckedChunk { sent: MS(sent_ms), transmissions, measured: true, ..AckedChunk::default() }
    }

    /// The samples in ms that SACKs at these times give on a path with an RTO of one second.
    fn measured(sacks: &[(u64, SackCause, &[AckedChunk])]) -> Vec<u128> {
        let config = Config::rfc9260();
        let mut congestion = config.congestion().make(&config.setup());
        let ip = std::net::IpAddr::from([10, 0, 0, 1]);
        let paths = [crate::path::Path::new(
            PathId(0),
            ip,
            (ip, 0).into(),
            (1480, 20),
            config.constants(),
            |max_chunk, ssthresh, ip| {
                let sizes = (max_chunk, ssthresh, ip);
                congestion.initial(&crate::policy::congestion::NewPath::new(
                    Time::ZERO,
                    PathId(0),
                    sizes,
                ))
            },
            Time::ZERO,
        )];
        let view = PathsView { paths: &paths, primary: PathId(0), current: PathId(0) };
        let mut policy = RETRANSMISSION_FLAG.make(&config.setup());
        let mut samples = Vec::new();
        for (at, cause, acked) in sacks {
            policy.samples(MS(*at), cause, acked, view, &mut samples);
        }
        samples.iter().map(|(_, rtt)| rtt.as_millis()).collect()
    }

    #[test]
    fn the_flag_tells_the_retransmission_from_the_original() {
        let none = SackCause::default();
        assert_eq!(measured(&[(150, none, &[chunk(100, 1)])]), [50]);
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 1)])]), [50]);
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 2)])]), [50]);
        // The original arrived late after all.
        assert_eq!(measured(&[(150, none, &[chunk(100, 2)])]), []);
        // Ambiguous: the first or the second retransmission.
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 3)])]), []);
        // Not chosen for a measurement.
        let bystander = AckedChunk { measured: false, ..chunk(100, 2) };
        assert_eq!(measured(&[(150, FLAG, &[bystander])]), []);
    }

    #[test]
    fn retransmissions_of_one_instant_measure_and_those_of_two_do_not() {
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 2), chunk(100, 2)])]), [50, 50]);
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 2), chunk(120, 2)])]), []);
        // A chunk sent once gives a sample of its own.
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 2), chunk(120, 2), chunk(90, 1)])]), [60]);
    }

    #[test]
    fn a_needless_copy_spoils_samples_until_it_must_have_been_answered() {
        let needless: (u64, SackCause, &[AckedChunk]) =
            (150, SackCause::default(), &[chunk(100, 2)]);
        assert_eq!(measured(&[needless, (1099, FLAG, &[chunk(1050, 2)])]), []);
        assert_eq!(measured(&[needless, (1100, FLAG, &[chunk(1050, 2)])]), [50]);
        assert_eq!(measured(&[needless, (300, FLAG, &[chunk(280, 1)])]), [20]);
        // A copy that was matched with its SACK prevents no sample.
        let matched: (u64, SackCause, &[AckedChunk]) = (150, FLAG, &[chunk(100, 2)]);
        assert_eq!(measured(&[matched, (300, FLAG, &[chunk(240, 2)])]), [50, 60]);
    }
}
