//! Windowed maxima (draft-ietf-ccwg-bbr 2.10, 2.11; "MaxBwFilterLen", "ExtraAckedFilterLen").

use std::collections::VecDeque;

/// The highest delivery rate of the current and of the previous probing cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    previous: u64,
    current: u64,
}

impl MaxBandwidth {
    pub(super) fn max(self) -> u64 {
        self.previous.max(self.current)
    }

    pub(super) fn update(&mut self, rate: u64) {
        self.current = self.current.max(rate);
    }

    /// A probing cycle is over (`AdvanceMaxBwFilter`). A cycle without samples drops nothing.
    pub(super) const fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }
}

/// The highest value of the last round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax {
    /// Rounds and values; both orders are strict, the rounds ascend and the values descend.
    samples: VecDeque<(u64, u64)>,
}

impl WindowedMax {
    /// Adds `value` in round `round`; returns the highest value of the last `window` rounds.
    pub(super) fn update(&mut self, value: u64, round: u64, window: u64) -> u64 {
        while self.samples.back().is_some_and(|&(_, last)| last <= value) {
            self.samples.pop_back();
        }
        if self.samples.back().is_none_or(|&(last, _)| last < round) {
            self.samples.push_back((round, value));
        }
        while self.samples.front().is_some_and(|&(first, _)| first + window <= round) {
            self.samples.pop_front();
        }
        self.samples.front().map_or(value, |&(_, max)| max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bandwidth_is_kept_for_two_cycles() {
        let mut max = MaxBandwidth::default();
        max.update(100);
        max.advance();
        max.update(60);
        assert_eq!(max.max(), 100);
        max.advance();
        max.update(50);
        assert_eq!(max.max(), 60);
        max.advance();
        max.advance();
        assert_eq!(max.max(), 50, "a cycle without samples");
    }

    proptest! {
        /// Compares with a search of all values, for windows of one and of ten rounds.
        #[test]
        fn agrees_with_a_search(
            ten in any::<bool>(), steps in prop::collection::vec((0u64..3, 0u64..100), 1..100),
        ) {
            let window = if ten { 10 } else { 1 };
            let (mut filter, mut round) = (WindowedMax::default(), 0);
            let mut all = Vec::new();
            for (rounds, value) in steps {
                round += rounds;
                all.push((round, value));
                let in_window = all.iter().filter(|(r, _)| r + window > round);
                let expected = in_window.map(|(_, v)| *v).max().unwrap();
                prop_assert_eq!(filter.update(value, round, window), expected);
                prop_assert!(filter.samples.len() <= window as usize);
            }
        }
    }
}
