//! Files that decide whom to trust.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks that only this user and the system's administrator can change a file and its folder, as
/// ssh does with its own. Returns the problem; a file that does not exist has none.
pub fn problem(file: &Path) -> io::Result<Option<String>> {
    let own = rustix::process::geteuid().as_raw();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    for path in std::iter::once(file).chain(folder) {
        let about = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        if ![0, own].contains(&about.uid()) {
            return Ok(Some(format!("{} belongs to another user", path.display())));
        }
        if about.mode() & 0o022 != 0 {
            return Ok(Some(format!("other users may write {}", path.display())));
        }
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
    }
}
