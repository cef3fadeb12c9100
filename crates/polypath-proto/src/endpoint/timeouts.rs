//! The timeouts of an endpoint's associations.

use std::collections::BTreeSet;

use crate::ids::AssociationId;
use crate::time::Time;

/// At most one timeout of each association, in the order of time.
///
/// Timeouts change with nearly every packet. The earliest one is kept apart from the others, so
/// that the tree does not change if that of the same association is the earliest again, as it
/// always is with a single association.
#[derive(Debug, Default)]
pub(super) struct Timeouts {
    /// `None` only if there are no others.
    first: Option<(Time, AssociationId)>,
    others: BTreeSet<(Time, AssociationId)>,
}

impl Timeouts {
    /// The earliest timeout.
    pub(super) const fn first(&self) -> Option<(Time, AssociationId)> {
        self.first
    }

    /// Replaces the timeout of an association, which is `old` so far.
    pub(super) fn replace(&mut self, id: AssociationId, old: Option<Time>, new: Option<Time>) {
        let new = new.map(|time| (time, id));
        if let Some(old) = old.map(|time| (time, id)) {
            if self.first == Some(old) {
                self.first = None;
            } else {
                self.others.remove(&old);
            }
        }
        let earliest = match self.first {
            Some(first) => Some(first),
            None => self.others.first().copied(),
        };
        let new_is_first = new.is_some_and(|new| earliest.is_none_or(|first| new < first));
        match (self.first, new) {
            (Some(first), Some(new)) if new_is_first => {
                self.others.insert(first);
                self.first = Some(new);
            }
            (None, Some(new)) if new_is_first => self.first = Some(new),
            (was, new) => {
                if was.is_none() {
                    self.first = self.others.pop_first();
                }
                self.others.extend(new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest(
            steps in vec((0u64..5, proptest::option::of(0u64..20)), 0..200),
        ) {
            let (mut timeouts, mut known) = (Timeouts::default(), BTreeMap::new());
            for (id, new) in steps {
                let (id, new) = (AssociationId(id), new.map(Time::from_millis));
                let old = match new {
                    Some(new) => known.insert(id, new),
                    None => known.remove(&id),
                };
                timeouts.replace(id, old, new);
                let earliest = known.iter().map(|(&id, &time)| (time, id)).min();
                prop_assert_eq!(timeouts.first(), earliest);
                let kept = timeouts.others.len() + usize::from(timeouts.first.is_some());
                prop_assert_eq!(kept, known.len());
            }
        }
    }
}
