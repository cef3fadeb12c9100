//! Delivery rate samples of a path (draft-ietf-ccwg-bbr 4.1, "Delivery Rate Samples").
//!
//! Every transmission leaves a record of what had been delivered when it was sent. Its
//! acknowledgement yields a sample: the bytes delivered since, divided by the time. Chunks that are
//! sent at one instant share a record, as the draft recommends for offloaded packets.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;

/// What one SACK shows about the rate at which a path delivers. Bytes are those of DATA chunks with
/// their headers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeliverySample {
    /// Bytes delivered on the path so far.
    pub delivered: u64,
    /// Bytes that had been delivered when the newest acknowledged chunk was sent.
    pub prior_delivered: u64,
    /// The interval in which the bytes between the two were sent, or delivered if that took longer.
    pub interval: Duration,
    /// Bytes per second in that interval. `None` if the interval is shorter than the shortest
    /// round-trip time: the acknowledgement may be for an earlier transmission; or if a SACK before
    /// it had no room to report all that had arrived.
    pub rate: Option<u64>,
    /// Whether the sender had nothing to send at some moment of the interval, although the window
    /// and the pacing rate allowed it: the path may be able to carry more.
    pub app_limited: bool,
    /// Bytes in flight when the newest acknowledged chunk had been sent, itself included.
    pub in_flight_at_send: u32,
    /// Bytes found lost since the newest acknowledged chunk was sent.
    pub lost: u64,
}

impl DeliverySample {
    /// Bytes delivered in the interval.
    pub const fn in_interval(&self) -> u64 {
        self.delivered.saturating_sub(self.prior_delivered)
    }
}

/// The circumstances in which a lost chunk was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossSample {
    /// Bytes delivered on the path so far.
    pub delivered: u64,
    /// Bytes in flight when it had been sent, itself included.
    pub in_flight_at_send: u32,
    /// Bytes found lost since it was sent, itself included.
    pub lost: u64,
    /// As in [`DeliverySample::app_limited`].
    pub app_limited: bool,
}

/// What had happened when chunks were sent: P in the draft.
#[derive(Clone, Copy, Debug)]
struct Record {
    sent: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
    /// More had been delivered than was known.
    blind: bool,
}

/// Whether a chunk was sent before, so that its acknowledgement may be for an earlier transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    None,
    /// On this path.
    Here,
    /// On another path as well.
    Elsewhere,
}

/// A path delivers in order, or nearly: an acknowledgement that is earlier than the last one by
/// more than one part in this many is for a transmission on another path.
const OVERTAKING: u32 = 8;

/// Measures the delivery rate of one path: C in the draft.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    delivered: u64,
    delivered_at: Time,
    /// When the chunk was sent that was delivered most recently, or the first one after a pause.
    first_sent: Time,
    lost: u64,
    /// Samples are limited by the application until more than this is delivered; 0 if they are not.
    app_limited: u64,
    /// The window, the pacing rate and the peer allowed more when sending last stopped at this
    /// time, but there was no data.
    unused_since: Option<Time>,
    /// In the order of `sent`.
    records: VecDeque<Record>,
    /// The newest chunk that the current SACK acknowledges.
    newest: Option<Record>,
    shortest: Option<Duration>,
    /// The last round-trip time of a chunk that was sent once.
    last: Option<Duration>,
    /// The last SACK had no room to report all that has arrived.
    blind: bool,
}

impl Sampler {
    /// A chunk of `size` bytes is sent; `in_flight` bytes were in flight before.
    pub(crate) fn sent(&mut self, now: Time, in_flight: u32, size: u32) {
        if in_flight == 0 {
            self.first_sent = now;
            self.delivered_at = now;
        }
        self.unused_since = None;
        let after = in_flight.saturating_add(size);
        if let Some(last) = self.records.back_mut().filter(|last| last.sent >= now) {
            last.in_flight = after;
            return;
        }
        self.records.push_back(Record {
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            in_flight: after,
            app_limited: self.is_app_limited(),
            blind: self.blind,
        });
    }

    /// Whether the last SACK had no room to report all that has arrived. What it did not report
    /// counts as delivered later, and would make the rate since then too high.
    pub(crate) const fn set_blind(&mut self, blind: bool) {
        self.blind = blind;
    }

    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }

    fn record(&self, sent: Time) -> Option<Record> {
        let place = self.records.partition_point(|r| r.sent < sent);
        self.records.get(place).copied().filter(|r| r.sent == sent)
    }

    /// A chunk of `size` bytes, last sent at `sent`, is acknowledged.
    pub(crate) fn acknowledged(&mut self, now: Time, sent: Time, size: u32, earlier: Earlier) {
        let age = now.since(sent);
        let is_early = self.shortest.is_none_or(|shortest| age < shortest);
        let overtakes = self.last.is_none_or(|last| age < last - last / OVERTAKING);
        if earlier == Earlier::Elsewhere && (is_early || overtakes) {
            // Another path has delivered it.
            return;
        }
        self.delivered += u64::from(size);
        self.delivered_at = now;
        if earlier == Earlier::None {
            self.shortest = Some(self.shortest.map_or(age, |shortest| shortest.min(age)));
            self.last = Some(age);
        } else if is_early {
            return;
        }
        if self.newest.is_none_or(|newest| sent > newest.sent)
            && let Some(record) = self.record(sent)
        {
            self.newest = Some(record);
            self.first_sent = sent;
        }
    }

    /// The sample of the SACK whose acknowledgements were reported; `GenerateRateSample`.
    pub(crate) fn take_sample(&mut self, now: Time) -> Option<DeliverySample> {
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newest = self.newest.take()?;
        let send_elapsed = newest.sent.since(newest.first_sent);
        let interval = send_elapsed.max(now.since(newest.delivered_at));
        let sound =
            !newest.blind && !interval.is_zero() && self.shortest.is_none_or(|rtt| interval >= rtt);
        let delivered = u128::from(self.delivered - newest.delivered);
        let rate = || (delivered * 1_000_000_000 / interval.as_nanos()).min(u64::MAX.into()) as u64;
        Some(DeliverySample {
            delivered: self.delivered,
            prior_delivered: newest.delivered,
            interval,
            rate: sound.then(rate),
            app_limited: newest.app_limited,
            in_flight_at_send: newest.in_flight,
            lost: self.lost - newest.lost,
        })
    }

    /// A chunk of `size` bytes, last sent at `sent`, was found lost.
    pub(crate) fn lost(&mut self, sent: Time, size: u32) -> Option<LossSample> {
        self.lost += u64::from(size);
        let record = self.record(sent)?;
        Some(LossSample {
            delivered: self.delivered,
            in_flight_at_send: record.in_flight,
            lost: self.lost - record.lost,
            app_limited: record.app_limited,
        })
    }

    /// Everything in flight was sent at `oldest` or later.
    pub(crate) fn drop_before(&mut self, oldest: Time) {
        while self.records.front().is_some_and(|r| r.sent < oldest) {
            self.records.pop_front();
        }
    }

    /// Nothing sent so far will be acknowledged, or nothing is in flight.
    pub(crate) fn drop_all(&mut self) {
        self.records.clear();
        self.newest = None;
    }

    /// Sending has stopped: `unused` if the path could have carried more.
    pub(crate) fn pause(&mut self, now: Time, unused: bool) {
        self.unused_since = if unused { self.unused_since.or(Some(now)) } else { None };
    }

    /// Called before an event that may release data: `CheckIfApplicationLimited`, with `in_flight`
    /// bytes in flight. Data that follows within the same instant leaves no gap.
    pub(crate) fn resume(&mut self, now: Time, in_flight: u32) {
        if self.unused_since.is_some_and(|since| since < now) {
            self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    /// Ten chunks of 1000 bytes are sent 1 ms apart, and acknowledged 100 ms later each.
    fn ten() -> (Sampler, Vec<DeliverySample>) {
        let mut sampler = Sampler::default();
        for k in 0..10 {
            sampler.sent(MS(1000 + k), k as u32 * 1000, 1000);
        }
        let mut samples = Vec::new();
        for k in 0..10 {
            sampler.acknowledged(MS(1100 + k), MS(1000 + k), 1000, Earlier::None);
            samples.extend(sampler.take_sample(MS(1100 + k)));
        }
        (sampler, samples)
    }

    /// draft-ietf-ccwg-bbr 4.1.1.2: delivered over the longer of the intervals of sending and of
    /// acknowledging.
    #[test]
    fn a_sample_covers_the_interval_since_its_chunk_was_sent() {
        let (_, samples) = ten();
        assert_eq!(samples.len(), 10);
        for (k, s) in samples.iter().enumerate() {
            // Nothing had been delivered when they were sent, and the first left at 1000 ms.
            let expected = Duration::from_millis(100 + k as u64);
            assert_eq!((s.prior_delivered, s.in_interval()), (0, 1000 * (k as u64 + 1)));
            assert_eq!((s.interval, s.in_flight_at_send), (expected, 1000 * (k as u32 + 1)));
            assert_eq!(s.rate, Some(1000 * (k as u64 + 1) * 1000 / (100 + k as u64)));
            assert!(!s.app_limited && s.lost == 0);
        }
    }

    /// The second flight is sent as the first one is acknowledged: 10 kB in each round trip.
    #[test]
    fn a_steady_flow_has_its_rate() {
        let (mut sampler, _) = (ten().0, ());
        let mut rates = Vec::new();
        for k in 0u64..100 {
            let sent = MS(2000 + 10 * k);
            sampler.sent(sent, if k == 0 { 0 } else { 10_000 }, 1000);
            if k >= 10 {
                sampler.acknowledged(sent, MS(2000 + 10 * (k - 10)), 1000, Earlier::None);
                rates.extend(sampler.take_sample(sent).and_then(|s| s.rate));
            }
        }
        assert!(rates[20..].iter().all(|rate| *rate == 100_000), "{rates:?}");
    }

    /// Draft 4.1.2.3: "IsNewestPacket"; one SACK yields one sample.
    #[test]
    fn the_newest_chunk_decides() {
        let (mut sampler, _) = ten();
        sampler.sent(MS(2000), 0, 1000);
        sampler.sent(MS(2050), 1000, 1000);
        sampler.acknowledged(MS(2150), MS(2050), 1000, Earlier::None);
        sampler.acknowledged(MS(2150), MS(2000), 1000, Earlier::None);
        let s = sampler.take_sample(MS(2150)).unwrap();
        assert_eq!((s.in_flight_at_send, s.in_interval()), (2000, 2000));
        assert_eq!(s.interval, Duration::from_millis(150));
        assert_eq!(sampler.take_sample(MS(2150)), None);
    }

    /// Draft 4.1.3.6: an acknowledgement sooner than the shortest round trip is for an earlier
    /// transmission.
    #[test]
    fn an_early_acknowledgement_of_a_retransmission_is_no_sample() {
        let (mut sampler, _) = ten();
        sampler.sent(MS(2000), 0, 1000);
        sampler.acknowledged(MS(2040), MS(2000), 1000, Earlier::Here);
        assert_eq!(sampler.take_sample(MS(2040)), None);
        sampler.sent(MS(3000), 0, 1000);
        sampler.acknowledged(MS(3100), MS(3000), 1000, Earlier::Here);
        assert_eq!(sampler.take_sample(MS(3100)).unwrap().rate, Some(10_000));
    }

    /// Data moved from another path, which delivers some of it before this one could, would show a
    /// rate that this path does not have.
    #[test]
    fn what_another_path_has_delivered_does_not_count() {
        let (mut sampler, _) = ten();
        sampler.sent(MS(2000), 0, 1000);
        sampler.acknowledged(MS(2160), MS(2000), 1000, Earlier::None);
        sampler.take_sample(MS(2160)).unwrap();
        sampler.sent(MS(3000), 0, 2000);
        // The shortest round trip takes 100 ms, the last one took 160 ms.
        for (at, counts) in [(3040, false), (3130, false), (3155, true)] {
            let before = sampler.delivered;
            sampler.acknowledged(MS(at), MS(3000), 1000, Earlier::Elsewhere);
            assert_eq!(sampler.delivered > before, counts, "{at}");
            assert_eq!(sampler.take_sample(MS(at)).is_some(), counts, "{at}");
        }
    }

    /// Draft 4.1.2.4: samples are limited by the application until what was in flight then is
    /// delivered.
    #[test]
    fn a_gap_marks_the_samples_of_a_round_trip() {
        let (mut sampler, _) = ten();
        sampler.sent(MS(2000), 0, 1000);
        sampler.pause(MS(2000), true);
        // Data within the same instant leaves no gap.
        sampler.resume(MS(2000), 1000);
        assert!(!sampler.is_app_limited());
        sampler.resume(MS(2010), 1000);
        assert!(sampler.is_app_limited());
        sampler.sent(MS(2010), 1000, 1000);
        sampler.acknowledged(MS(2100), MS(2000), 1000, Earlier::None);
        assert!(!sampler.take_sample(MS(2100)).unwrap().app_limited, "sent before the gap");
        sampler.acknowledged(MS(2110), MS(2010), 1000, Earlier::None);
        assert!(sampler.take_sample(MS(2110)).unwrap().app_limited);
        sampler.sent(MS(2200), 0, 1000);
        assert!(!sampler.is_app_limited());
    }

    /// Chunks that a full SACK did not report count as delivered too late.
    #[test]
    fn a_chunk_sent_after_a_full_sack_yields_no_rate() {
        let (mut sampler, _) = ten();
        sampler.set_blind(true);
        sampler.sent(MS(2000), 0, 1000);
        sampler.set_blind(false);
        sampler.sent(MS(2010), 1000, 1000);
        sampler.acknowledged(MS(2100), MS(2000), 1000, Earlier::None);
        assert_eq!(sampler.take_sample(MS(2100)).unwrap().rate, None);
        sampler.acknowledged(MS(2110), MS(2010), 1000, Earlier::None);
        assert_eq!(sampler.take_sample(MS(2110)).unwrap().rate, Some(2000 * 1000 / 110));
    }

    #[test]
    fn losses_since_a_chunk_was_sent_are_counted() {
        let (mut sampler, _) = ten();
        for k in 0..4 {
            sampler.sent(MS(2000 + k), k as u32 * 1000, 1000);
        }
        let lost = sampler.lost(MS(2001), 1000).unwrap();
        assert_eq!((lost.in_flight_at_send, lost.lost, lost.delivered), (2000, 1000, 10_000));
        assert_eq!(sampler.lost(MS(2002), 1000).unwrap().lost, 2000);
        sampler.acknowledged(MS(2103), MS(2003), 1000, Earlier::None);
        assert_eq!(sampler.take_sample(MS(2103)).unwrap().lost, 2000);
        assert_eq!(sampler.lost(MS(1000), 1000).map(|s| s.lost), Some(3000), "still on record");
    }

    #[test]
    fn records_are_dropped_with_the_data_in_flight() {
        let (mut sampler, _) = ten();
        assert_eq!(sampler.records.len(), 10);
        sampler.drop_before(MS(1004));
        assert_eq!(sampler.records.len(), 6);
        sampler.drop_all();
        assert!(sampler.records.is_empty());
        // Chunks that leave at one instant share a record.
        sampler.sent(MS(2000), 0, 1000);
        sampler.sent(MS(2000), 1000, 1000);
        assert_eq!((sampler.records.len(), sampler.records[0].in_flight), (1, 2000));
    }
}
