//! Files that decide whom to trust.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks that only this user and the system's administrator can change a file, or put another one
/// in its place, as sshd does with its own: the file and every folder above it belong to one of
/// them, and no other user may write them. A folder with the sticky bit, such as /tmp, may be
/// writable: others cannot rename what is in it. Symbolic links are followed.
///
/// Returns the problem; a file that does not exist has none.
pub fn problem(file: &Path) -> io::Result<Option<String>> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    for start in [file, folder.unwrap_or_else(|| Path::new("."))] {
        // Of a path that does not exist, what exists of it.
        let Some(path) = start.ancestors().find_map(|path| fs::canonicalize(path).ok()) else {
            continue;
        };
        for path in path.ancestors() {
            if let Some(problem) = exposed(path)? {
                return Ok(Some(problem));
            }
        }
    }
    Ok(None)
}

/// Whether other users can change a file or a folder.
fn exposed(path: &Path) -> io::Result<Option<String>> {
    let about = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    if ![0, rustix::process::geteuid().as_raw()].contains(&about.uid()) {
        return Ok(Some(format!("{} belongs to another user", path.display())));
    }
    let is_sticky = about.is_dir() && about.mode() & 0o1000 != 0;
    if about.mode() & 0o022 != 0 && !is_sticky {
        return Ok(Some(format!("other users may write {}", path.display())));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_this_user_may_write() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("known_hosts");
        assert_eq!(problem(&file).unwrap(), None);
        fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&file, 0o644);
        assert_eq!(problem(&file).unwrap(), None);
        for mode in [0o664, 0o646] {
            set(&file, mode);
            assert!(problem(&file).unwrap().unwrap().contains("may write"), "{mode:o}");
        }
        set(&file, 0o600);
        set(place.path(), 0o777);
        assert!(problem(&file).unwrap().unwrap().contains("may write"));
        set(place.path(), 0o1777);
        assert_eq!(problem(&file).unwrap(), None);
    }

    /// Who can rename a folder above the file can replace the file.
    #[test]
    fn folders_above_and_targets_of_links_count_too() {
        let place = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let deep = place.path().join("config/polypath");
        fs::create_dir_all(&deep).unwrap();
        let file = deep.join("known_hosts");
        set(&place.path().join("config"), 0o775);
        let found = problem(&file).unwrap().unwrap();
        assert!(found.contains("may write") && found.ends_with("config"), "{found}");
        set(&place.path().join("config"), 0o755);
        assert_eq!(problem(&file).unwrap(), None);
        let open = place.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::write(open.join("hosts"), "").unwrap();
        set(&open, 0o777);
        std::os::unix::fs::symlink(open.join("hosts"), &file).unwrap();
        let found = problem(&file).unwrap().unwrap();
        assert!(found.contains("may write") && found.ends_with("open"), "{found}");
    }
}
