//! The retransmission flag: one bit in DATA says that the chunk was sent before, and one in SACK that
//! a packet with such a chunk caused it.
//!
//! Caro 2006 (retransmission policies), 4.2: "One alternative solution, incurring less packet
//! overhead, may be to use flag(s) in the data and sack headers to signal whether the data/sack is
//! for an original transmission or retransmission." What makes it unambiguous:
//!
//! - The receiver acknowledges a packet with a retransmission at once, so that a SACK with the flag
//!   has one cause, and its delay is not measured.
//! - A chunk sent once measures as by Karn's rule: only one transmission of it exists.
//! - A chunk sent exactly twice measures if the SACK that acknowledges it first has the flag: not the
//!   original caused that SACK but a retransmission. One bit does not tell one retransmission from
//!   another, so a chunk sent three times measures nothing.
//! - That retransmission was this chunk's, unless it was another's. A SACK covers what caused it;
//!   thus it can only have been one of a chunk that is acknowledged by now. Therefore nothing is
//!   measured if the SACK newly acknowledges retransmissions of different instants, nor while a
//!   needless copy of a chunk that had been acknowledged before may still be on its way: one that was
//!   not matched with its SACK in this manner counts as such for the RTO that the path would have
//!   without backing off, SRTT + 4 RTTVAR. (The backed-off one would keep itself up: it is stale for
//!   want of samples.)
//!
//! One measurement each round trip and path (RFC 9260 6.3.1, C4).

use std::time::Duration;

use super::{AckedChunk, RttSampling, SackCause};
use crate::policy::{Answer, PathView, PathsView};
use crate::{Extension, PathId, Time};

/// See the [module](self).
pub static RETRANSMISSION_FLAG: Answer<dyn RttSampling> = Answer {
    name: "retransmission-flag",
    summary: "a retransmitted chunk too, if a flag in the SACK says that the retransmission caused \
              it; both sides (Caro 2006, 4.2)",
    make: |_| Box::new(RetransmissionFlag { stray_until: Time::ZERO }),
};

#[derive(Debug)]
struct RetransmissionFlag {
    /// Until then a retransmission of a chunk acknowledged long since may cause a SACK.
    stray_until: Time,
}

impl RttSampling for RetransmissionFlag {
    fn needs(&self) -> Option<Extension> {
        Some(Extension::RetransmissionFlag)
    }

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
        // Which copies are not accounted for? Only a single chunk that its only retransmission brought
        // leaves none behind; chunks of one instant may have left in different packets.
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

/// The RTO before any backing off, once there is a sample.
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
        AckedChunk { path: PathId(0), sent: MS(sent_ms), transmissions, measured: true }
    }

    /// What SACKs at these times measure, in ms, on a path with an RTO of one second.
    fn measured(sacks: &[(u64, SackCause, &[AckedChunk])]) -> Vec<u128> {
        let config = Config::rfc9260();
        let congestion = (config.congestion().make)(&config);
        let ip = std::net::IpAddr::from([10, 0, 0, 1]);
        let paths = [crate::path::Path::new(
            PathId(0),
            ip,
            (ip, 0).into(),
            (1480, 20),
            &config,
            &*congestion,
            Time::ZERO,
        )];
        let view = PathsView { paths: &paths, primary: PathId(0), current: PathId(0) };
        let mut policy = (RETRANSMISSION_FLAG.make)(&config);
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
        // The original came late after all.
        assert_eq!(measured(&[(150, none, &[chunk(100, 2)])]), []);
        // The first retransmission, or the second?
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 3)])]), []);
        // Not under measurement.
        let bystander = AckedChunk { measured: false, ..chunk(100, 2) };
        assert_eq!(measured(&[(150, FLAG, &[bystander])]), []);
    }

    #[test]
    fn retransmissions_of_one_instant_measure_and_those_of_two_do_not() {
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 2), chunk(100, 2)])]), [50, 50]);
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 2), chunk(120, 2)])]), []);
        // An original beside them measures by itself.
        assert_eq!(measured(&[(150, FLAG, &[chunk(100, 2), chunk(120, 2), chunk(90, 1)])]), [60]);
    }

    #[test]
    fn a_needless_copy_spoils_samples_until_it_must_have_been_answered() {
        let needless: (u64, SackCause, &[AckedChunk]) =
            (150, SackCause::default(), &[chunk(100, 2)]);
        assert_eq!(measured(&[needless, (1099, FLAG, &[chunk(1050, 2)])]), []);
        assert_eq!(measured(&[needless, (1100, FLAG, &[chunk(1050, 2)])]), [50]);
        assert_eq!(measured(&[needless, (300, FLAG, &[chunk(280, 1)])]), [20]);
        // A copy that is accounted for spoils nothing.
        let matched: (u64, SackCause, &[AckedChunk]) = (150, FLAG, &[chunk(100, 2)]);
        assert_eq!(measured(&[matched, (300, FLAG, &[chunk(240, 2)])]), [50, 60]);
    }
}
