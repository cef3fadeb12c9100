//! Suggestions for misspelt names.

/// The known name nearest to `name`, if it is near enough to be a spelling mistake: at most a third
/// of its letters differ.
pub fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, best) = known
        .iter()
        .map(|candidate| (distance(&fold(name), &fold(candidate)), *candidate))
        .min_by_key(|(distance, _)| *distance)?;
    let length = name.chars().count().max(best.chars().count());
    (distance <= length.div_ceil(3)).then_some(best)
}

/// Removes differences in case and in the kind of separator.
fn fold(name: &str) -> Vec<char> {
    name.chars().map(|c| if c == '-' || c == ' ' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Optimal string alignment distance: insertions, deletions, substitutions, swapped neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_strangers() {
        let known = ["rate", "delay", "queue", "path_max_retrans"];
        assert_eq!(closest("dealy", &known), Some("delay"));
        assert_eq!(closest("Path-Max-Retrans", &known), Some("path_max_retrans"));
        assert_eq!(closest("path_max_retran", &known), Some("path_max_retrans"));
        assert_eq!(closest("bandwidth", &known), None);
        assert_eq!(closest("x", &[]), None);
    }
}
