//! Detects that a run makes no progress.

use std::time::Duration;

use polypath_proto::Time;

/// Compares the progress of the associations at times that are at least `patience` apart: if two
/// successive comparisons find the same marks, nothing has made progress in between.
#[derive(Debug)]
pub(crate) struct Watch {
    patience: Duration,
    /// Time of the next comparison.
    due: Time,
    marks: Vec<u64>,
}

impl Watch {
    /// Starts at `from`: before that, an association may still be waiting for a scheduled change.
    pub(crate) const fn new(from: Time, patience: Duration) -> Self {
        Self { patience, due: from, marks: Vec::new() }
    }

    /// Time of the comparison that is due before an event at `next`, if any.
    #[inline]
    pub(crate) fn due(&self, next: Time) -> Option<Time> {
        (next > self.due).then_some(self.due)
    }

    /// Makes the comparison: false if the marks are those of the last one.
    pub(crate) fn progressed(&mut self, next: Time, marks: Vec<u64>) -> bool {
        if self.marks == marks {
            return false;
        }
        self.marks = marks;
        // Nothing changes before the next event: a comparison before it would find the same marks.
        self.due = next + self.patience;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_equal_comparisons_are_a_stall() {
        let at = Time::from_secs;
        let mut watch = Watch::new(at(10), Duration::from_secs(5));
        assert_eq!(watch.due(at(10)), None);
        assert_eq!(watch.due(at(12)), Some(at(10)));
        assert!(watch.progressed(at(12), vec![0, 1]));
        assert_eq!(watch.due(at(17)), None);
        assert_eq!(watch.due(at(18)), Some(at(17)));
        assert!(watch.progressed(at(18), vec![0, 2]));
        assert_eq!(watch.due(at(24)), Some(at(23)));
        assert!(!watch.progressed(at(24), vec![0, 2]));
    }
}
