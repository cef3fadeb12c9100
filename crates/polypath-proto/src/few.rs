//! Lists with one element for each path, which are short.

use std::cmp::Ordering;

/// Sorts a short list in place; equal elements keep their order. It takes quadratic time.
///
/// `slice::sort_by` is quicker from about twenty elements on, but each use of it compiles for as
/// long as a thousand lines of this crate.
pub(crate) fn sort<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    for end in 1..list.len() {
        let mut at = end;
        while at > 0 && compare(&list[at - 1], &list[at]) == Ordering::Greater {
            list.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_like_the_librarys_stable_sort() {
        // All lists of up to five elements of three values, each with its place.
        for length in 0..=5 {
            for number in 0..3_usize.pow(length) {
                let value = |place| number / 3_usize.pow(place) % 3;
                let mut list: Vec<_> = (0..length).map(|place| (value(place), place)).collect();
                let mut expected = list.clone();
                expected.sort_by_key(|element| std::cmp::Reverse(element.0));
                sort(&mut list, |a, b| b.0.cmp(&a.0));
                assert_eq!(list, expected);
            }
        }
    }
}
