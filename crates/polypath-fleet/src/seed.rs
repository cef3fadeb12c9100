//! The first number of a fleet's run: it is derived from the commit, so that each commit runs
//! networks that no earlier one has run, and runs of the same commit are the same.

use std::path::Path;
use std::process::Command;

/// The first number if there is no commit, such as in an unpacked archive.
pub const WITHOUT_A_COMMIT: u64 = 0;

/// The first 64 bits of the commit that is checked out, or [`WITHOUT_A_COMMIT`].
pub fn of_commit() -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(folder).output();
    let commit = output.ok().filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    commit.and_then(|commit| first_bits(&commit)).unwrap_or(WITHOUT_A_COMMIT)
}

fn first_bits(commit: &str) -> Option<u64> {
    u64::from_str_radix(commit.get(..16)?, 16).ok()
}

/// Parses a number: decimal, or hexadecimal after "0x".
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.replace('_', "").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_the_beginning_of_the_commit() {
        assert_eq!(
            first_bits("0f1adb6cafe0000100000000000000000000aaaa\n"),
            Some(0x0f1a_db6c_afe0_0001)
        );
        assert_eq!(first_bits("short"), None);
        assert_eq!(first_bits("not a commit at all"), None);
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("1_000_000"), Some(1_000_000));
        assert_eq!(number("0x1f"), Some(31));
        assert_eq!(number("1f"), None);
    }
}
