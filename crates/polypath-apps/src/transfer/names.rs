//! Names of files that a peer has sent: what the receiver accepts.

use std::fmt;

use thiserror::Error;

use crate::wire::is_invisible;

/// Maximum number of bytes in a name: the limit of nearly every file system.
const MOST_BYTES: usize = 255;
/// Maximum number of folders in a path.
const MOST_DEPTH: usize = 64;
/// Maximum number of bytes in a path, with its separators.
const MOST_PATH: usize = 4096;

/// Why a name is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// The name is empty, `.` or `..`.
    #[error("it names no file")]
    NoName,
    /// The name contains a separator of folders.
    #[error("it has a path separator")]
    Separator,
    /// The name contains a control character, such as a line break or a terminal's escape.
    #[error("it has a control character")]
    Control,
    /// The name contains a character that changes how the others are shown.
    #[error("it has an invisible character")]
    Invisible,
    /// The name has more bytes than file systems store.
    #[error("it is longer than 255 bytes")]
    TooLong,
    /// The name begins with a dot.
    #[error("it is a hidden name")]
    Hidden,
    /// The path has too many folders, or too many bytes.
    #[error("its path is too long")]
    TooDeep,
    /// Partial files have such a name.
    #[error("it is the name of a partial file")]
    Partial,
}

/// End of the name of a partial file (see [`partial`](crate::transfer)).
pub(crate) const PARTIAL: &str = ".polypath-part";

/// Checks one name of a path. Hidden names are rejected unless `hidden` is set.
pub fn check(name: &str, hidden: bool) -> Result<(), NameProblem> {
    if name.is_empty() || name == "." || name == ".." {
        return Err(NameProblem::NoName);
    }
    if name.contains(['/', '\\']) {
        return Err(NameProblem::Separator);
    }
    if name.chars().any(char::is_control) {
        return Err(NameProblem::Control);
    }
    if name.chars().any(is_invisible) {
        return Err(NameProblem::Invisible);
    }
    if name.len() > MOST_BYTES {
        return Err(NameProblem::TooLong);
    }
    if name.starts_with('.') && name.ends_with(PARTIAL) {
        return Err(NameProblem::Partial);
    }
    if name.starts_with('.') && !hidden {
        return Err(NameProblem::Hidden);
    }
    Ok(())
}

/// A path relative to the receiver's folder: every name has passed [`check`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(Vec<String>);

impl RelativePath {
    /// Checks the names of a path.
    ///
    /// # Errors
    ///
    /// The path has no name, a name is rejected by [`check`], or the path is too long.
    pub fn new(names: Vec<String>, hidden: bool) -> Result<Self, NameProblem> {
        if names.is_empty() {
            return Err(NameProblem::NoName);
        }
        let bytes: usize = names.iter().map(|name| name.len() + 1).sum();
        if names.len() > MOST_DEPTH || bytes > MOST_PATH {
            return Err(NameProblem::TooDeep);
        }
        names.iter().try_for_each(|name| check(name, hidden))?;
        Ok(Self(names))
    }

    /// The folders of the path, and the last name.
    pub(crate) fn split(&self) -> (&[String], &str) {
        match self.0.split_last() {
            Some((last, folders)) => (folders, last),
            // `new` rejects an empty path.
            None => (&[], ""),
        }
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

/// Whether a symbolic link at `path` with this target points to something inside of the folder
/// that `path` is relative to, whichever links the transfer has created before.
pub(crate) fn stays_inside(path: &RelativePath, target: &str) -> bool {
    if target.is_empty() || target.starts_with('/') || target.chars().any(char::is_control) {
        return false;
    }
    // The link's own top folder is the limit: what is next to it was not sent with it.
    let mut above = path.0.len().saturating_sub(2);
    let mut is_down = false;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            // A name before it may be a link that leads further up than its name shows.
            ".." if is_down || above == 0 => return false,
            ".." => above -= 1,
            _ => is_down = true,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_names_are_accepted() {
        for name in ["a", "a b", "ä", "a..b", "-rf", "a.", "CON", "日本", &"x".repeat(255)] {
            assert_eq!(check(name, false), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_harm_are_rejected() {
        for (name, problem) in [
            ("", NameProblem::NoName),
            (".", NameProblem::NoName),
            ("..", NameProblem::NoName),
            ("../a", NameProblem::Separator),
            ("/a", NameProblem::Separator),
            ("a/b", NameProblem::Separator),
            ("a\\b", NameProblem::Separator),
            ("a\nb", NameProblem::Control),
            ("a\0", NameProblem::Control),
            ("\u{1b}[2J", NameProblem::Control),
            ("\u{85}", NameProblem::Control),
            ("gpj\u{202e}.exe", NameProblem::Invisible),
            (".bashrc", NameProblem::Hidden),
            (".x.0123456789ab.polypath-part", NameProblem::Partial),
        ] {
            assert_eq!(check(name, false), Err(problem), "{name:?}");
        }
        assert_eq!(check(&"x".repeat(256), false), Err(NameProblem::TooLong));
        assert_eq!(check(".git", true), Ok(()));
        assert_eq!(check(".a.polypath-part", true), Err(NameProblem::Partial));
    }

    #[test]
    fn paths_have_limits() {
        let path = |count: usize, name: &str| RelativePath::new(vec![name.into(); count], false);
        assert_eq!(path(0, "a"), Err(NameProblem::NoName));
        assert!(path(64, "a").is_ok());
        assert_eq!(path(65, "a"), Err(NameProblem::TooDeep));
        assert_eq!(path(17, &"x".repeat(250)), Err(NameProblem::TooDeep));
        assert_eq!(path(2, ".."), Err(NameProblem::NoName));
    }

    #[test]
    fn links_stay_in_the_folder_that_was_sent() {
        let inside = |path: &[&str], target: &str| {
            let names = path.iter().map(|&name| name.to_owned()).collect();
            stays_inside(&RelativePath::new(names, true).unwrap(), target)
        };
        assert!(inside(&["folder", "link"], "file"));
        assert!(inside(&["folder", "deep", "link"], "../file"));
        assert!(inside(&["link"], "file"));
        for (path, target) in [
            (&["folder", "link"][..], "/etc/passwd"),
            (&["folder", "link"], "../other"),
            (&["folder", "deep", "link"], "../../other"),
            (&["folder", "deep", "link"], "../../../folder/x"),
            (&["link"], ".."),
            (&["link"], "a/../../b"),
            (&["folder", "link"], ""),
            (&["folder", "link"], "a\nb"),
            // `up` may be a link to `../..`, which `stays_inside` accepts in that folder.
            (&["folder", "a", "b", "link"], "up/.."),
            (&["folder", "a", "b", "link"], "./up/../x"),
        ] {
            assert!(!inside(path, target), "{path:?} {target}");
        }
    }

    proptest! {
        /// An accepted path, joined to a folder by the system's rules, is inside of that folder.
        #[test]
        fn accepted_paths_stay_in_their_folder(names in prop::collection::vec(any::<String>(), 0..4)) {
            if let Ok(path) = RelativePath::new(names, true) {
                let joined = std::path::Path::new("/folder").join(path.to_string());
                prop_assert!(joined.starts_with("/folder"));
                let all_normal = joined.components().skip(1)
                    .all(|part| matches!(part, std::path::Component::Normal(_)));
                prop_assert!(all_normal);
            }
        }
    }
}
