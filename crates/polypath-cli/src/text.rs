//! Human-readable numbers with units.

use std::time::Duration;

use polypath::PathState;

/// Formats bytes: "8.39 MB", with powers of 1000.
pub(crate) fn size(bytes: u64) -> String {
    scaled(bytes as f64, &["B", "kB", "MB", "GB", "TB"])
}

/// Formats a bit rate: "9.52 Mbit/s".
pub(crate) fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// Formats a duration: "92.1 ms", "1.53 s".
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut index = 0;
    while value >= 999.5 && index + 1 < units.len() {
        value /= 1000.0;
        index += 1;
    }
    let digits = match value {
        _ if index == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[index])
}

/// The word for a path's state in JSON.
pub(crate) const fn state_key(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially_failed",
        PathState::Inactive => "inactive",
        PathState::Removed => "removed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(8_388_608), "8.39 MB");
        assert_eq!(size(999_999), "1.00 MB");
        assert_eq!(rate(9_996_000.0), "10.0 Mbit/s");
        assert_eq!(rate(123e9), "123 Gbit/s");
        assert_eq!(span(Duration::from_micros(92_140)), "92.1 ms");
        assert_eq!(span(Duration::from_millis(1530)), "1.53 s");
    }
}
