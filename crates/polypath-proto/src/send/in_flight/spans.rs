//! Runs of chunks, as gap ack blocks report them.

use crate::wire::GapBlock;

/// A run of places, both ends included. A place counts TSNs from the association's first one and
/// does not wrap.
pub(super) type Span = (u64, u64);

/// Converts the gap blocks of a SACK whose cumulative TSN ack is the ack point to places. A block
/// that begins within or below an earlier one is ignored.
pub(super) fn spans_of(
    first_place: u64,
    gaps: impl Iterator<Item = GapBlock>,
    spans: &mut Vec<Span>,
) {
    spans.clear();
    // The run that the next block may continue.
    let mut open: Option<Span> = None;
    places_of(first_place, gaps).for_each(|(first, last)| match &mut open {
        Some(run) if first <= run.1 => {}
        Some(run) if first == run.1 + 1 => run.1 = last,
        Some(run) => spans.push(std::mem::replace(run, (first, last))),
        None => open = Some((first, last)),
    });
    spans.extend(open);
}

/// The places of each sound block.
fn places_of(first_place: u64, gaps: impl Iterator<Item = GapBlock>) -> impl Iterator<Item = Span> {
    // Gap blocks count from the ack point, one below the ring.
    let base = first_place.wrapping_sub(1);
    gaps.filter(|g| g.is_sound())
        .map(move |g| (base.wrapping_add(g.start.into()), base.wrapping_add(g.end.into())))
}

/// Whether [`spans_of`] has a place above `highest`, found without the memory for the spans.
pub(super) fn reach_above(
    highest: u64,
    first_place: u64,
    gaps: impl Iterator<Item = GapBlock>,
) -> bool {
    let mut end = None;
    places_of(first_place, gaps).for_each(|(first, last)| {
        if end.is_none_or(|end| first > end) {
            end = Some(last);
        }
    });
    end > Some(highest)
}

/// Places in `a` or `b`; both ascend.
pub(super) fn union(a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let Some(&span) = match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if y < x => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    } {
        match spans.last_mut() {
            Some(l) if span.0 <= l.1 + 1 => l.1 = l.1.max(span.1),
            _ => spans.push(span),
        }
    }
    spans
}

/// Places in both `a` and `b`; both ascend.
pub(super) fn intersection(a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let span = (x.0.max(y.0), x.1.min(y.1));
        if span.0 <= span.1 {
            spans.push(span);
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    spans
}

/// Whether every place in `b` is in `a`; both ascend, and neither has adjacent runs.
pub(super) fn covers(a: &[Span], b: &[Span]) -> bool {
    let mut a = a.iter().peekable();
    b.iter().all(|run| {
        while a.next_if(|s| s.1 < run.0).is_some() {}
        a.peek().is_some_and(|s| s.0 <= run.0 && run.1 <= s.1)
    })
}

/// Calls `each` with every place in `a` that is not in `b`; both ascend.
pub(super) fn difference(a: &[Span], b: &[Span], mut each: impl FnMut(u64)) {
    difference_in_runs(a, b, |place, stop| (place..stop).for_each(&mut each));
}

/// Calls `each` with every run of places in `a` that are not in `b`: its first place, and the one
/// after its last; both ascend.
pub(super) fn difference_in_runs(a: &[Span], b: &[Span], mut each: impl FnMut(u64, u64)) {
    let mut b = b.iter().peekable();
    for &(first, last) in a {
        let mut place = first;
        while place <= last {
            while b.next_if(|s| s.1 < place).is_some() {}
            let stop = match b.peek() {
                Some(s) if s.0 <= place => {
                    place = s.1 + 1;
                    continue;
                }
                Some(s) => s.0.min(last + 1),
                None => last + 1,
            };
            each(place, stop);
            place = stop;
        }
    }
}
