//! A folder of the receiver, by its descriptor: names are looked up in it without following
//! symbolic links, so that no name leads outside.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, RawMode, RenameFlags, StatVfs, Timespec, Timestamps,
};
use rustix::io::Errno;

/// The disk is full when less than this share of it is left, at most [`RESERVE`] bytes.
const RESERVE_SHARE: u64 = 100;
/// Maximum reserve in bytes.
const RESERVE: u64 = 1 << 30;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// Its path, for messages.
    path: PathBuf,
}

/// What a name in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A regular file with this many bytes.
    File(u64),
    Folder,
    /// A symbolic link, a device, a pipe or a socket.
    Other,
}

/// Permission bits and time of the last change, as an entry of the sender has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Permission bits; `None` for those of any new file.
    pub(crate) mode: Option<u32>,
    /// Seconds since 1970, and nanoseconds.
    pub(crate) modified: Option<(i64, u32)>,
}

impl Folder {
    /// Opens a folder that the user of this side has chosen; symbolic links are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: fs::open(path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// Another handle of the same folder.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// The path of a name in the folder, for messages.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if self.path == Path::new(".") { PathBuf::from(name) } else { self.path.join(name) }
    }

    /// Opens a folder in this one; fails if it is a symbolic link.
    pub(crate) fn enter(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat(&self.fd, name, flags, Mode::empty())?;
        Ok(Self { fd, path: self.path(name) })
    }

    /// Creates a folder in this one; true if it did not exist. The umask applies to `mode`, and
    /// this user can always use it.
    pub(crate) fn make(&self, name: &str, mode: u32) -> io::Result<(Self, bool)> {
        let mode = permissions(mode | 0o700);
        let new = match fs::mkdirat(&self.fd, name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        Ok((self.enter(name)?, new))
    }

    /// What the name is; `None` if nothing has it.
    pub(crate) fn look(&self, name: &str) -> io::Result<Option<Found>> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Found::File(u64::try_from(stat.st_size).unwrap_or(0)),
                FileType::Directory => Found::Folder,
                _ => Found::Other,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file to read.
    pub(crate) fn read(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.fd, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
    }

    /// Opens a file of this user to write, created if missing and readable for no other user. Fails
    /// for a symbolic link, for a file with a second name and for another user's file: a local
    /// attacker may have prepared it.
    pub(crate) fn write(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?;
        let stat = fs::fstat(&fd)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !regular || stat.st_nlink != 1 || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Errno::PERM.into());
        }
        Ok(File::from(fd))
    }

    /// Whether the name still belongs to this open file.
    pub(crate) fn is_named(&self, file: &File, name: &str) -> io::Result<bool> {
        let open = fs::fstat(file.as_fd())?;
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((open.st_dev, open.st_ino) == (named.st_dev, named.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a file in this folder. Without `overwrite`, fails with `AlreadyExists` if the new
    /// name exists.
    pub(crate) fn rename(&self, from: &str, to: &str, overwrite: bool) -> io::Result<()> {
        if overwrite {
            return Ok(fs::renameat(&self.fd, from, &self.fd, to)?);
        }
        match fs::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
            // The file system has no such renaming: a second name never replaces one either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty())?;
                Ok(fs::unlinkat(&self.fd, from, AtFlags::empty())?)
            }
            done => Ok(done?),
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Creates a symbolic link. Fails with `AlreadyExists` if the name exists.
    pub(crate) fn link(&self, name: &str, target: &str) -> io::Result<()> {
        Ok(fs::symlinkat(target, &self.fd, name)?)
    }

    /// The target of a symbolic link.
    pub(crate) fn link_target(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(&self.fd, name, Vec::new())?.into_bytes())
    }

    /// Sets the attributes of the folder itself.
    pub(crate) fn set(&self, attributes: Attributes) -> io::Result<()> {
        set(&self.fd, attributes)
    }

    /// Makes the names in the folder survive a power failure.
    pub(crate) fn sync(&self) {
        // The files are complete on disk already, and some file systems cannot sync folders.
        let _ = fs::fsync(&self.fd);
    }

    /// Checks that this user can create a file of this name, which nothing has yet: the disk may
    /// be full or read-only, or not store such names.
    pub(crate) fn try_name(&self, name: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        drop(fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?);
        self.remove(name)
    }

    /// Bytes that a transfer may still fill; 0 if the disk has no room for another entry.
    pub(crate) fn free(&self) -> io::Result<u64> {
        Ok(usable(&fs::fstatvfs(&self.fd)?))
    }
}

/// Sets permissions and time of an open file or folder. The umask of this process applies, and bits
/// that change the user of a program are dropped.
pub(crate) fn set(fd: impl AsFd, attributes: Attributes) -> io::Result<()> {
    if let Some(mode) = attributes.mode {
        fs::fchmod(&fd, permissions(mode & !umask()))?;
    }
    if let Some((seconds, nanoseconds)) = attributes.modified {
        let time = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds.min(999_999_999)) };
        let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };
        fs::futimens(&fd, &Timestamps { last_access: now, last_modification: time })?;
    }
    Ok(())
}

/// Permissions, in the type that the system has for them.
const fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & 0o777) as RawMode)
}

/// The permissions that new files of this process do not get.
fn umask() -> u32 {
    use std::sync::OnceLock;
    static UMASK: OnceLock<u32> = OnceLock::new();
    // The system call that reads it sets it, which would disturb other threads.
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
    })
}

/// Free bytes without the reserve; 0 if less than the reserve of inodes is left.
fn usable(disk: &StatVfs) -> u64 {
    // Some file systems report 0 inodes, because they have no limit.
    if disk.f_files > 0 && disk.f_favail <= disk.f_files / RESERVE_SHARE {
        return 0;
    }
    let unit = disk.f_frsize.max(1);
    let reserve = (disk.f_blocks.saturating_mul(unit) / RESERVE_SHARE).min(RESERVE);
    disk.f_bavail.saturating_mul(unit).saturating_sub(reserve)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        (place, folder)
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let (place, folder) = folder();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("file"), "precious").unwrap();
        symlink(outside.path(), place.path().join("out")).unwrap();
        symlink(outside.path().join("file"), place.path().join("link")).unwrap();
        assert!(folder.enter("out").is_err());
        assert!(folder.make("out", 0o755).is_err());
        assert!(folder.read("link").is_err());
        assert!(folder.write("link").is_err());
        assert_eq!(folder.look("link").unwrap(), Some(Found::Other));
        assert_eq!(std::fs::read(outside.path().join("file")).unwrap(), b"precious");
    }

    #[test]
    fn prepared_files_are_not_written() {
        let (place, folder) = folder();
        std::fs::write(place.path().join("file"), "precious").unwrap();
        std::fs::hard_link(place.path().join("file"), place.path().join("other")).unwrap();
        assert!(folder.write("other").is_err());
        fs::mknodat(fs::CWD, place.path().join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        assert!(folder.write("pipe").is_err() && folder.read("pipe").is_err());
    }

    #[test]
    fn renaming_replaces_only_on_request() {
        let (place, folder) = folder();
        std::fs::write(place.path().join("new"), "new").unwrap();
        std::fs::write(place.path().join("old"), "old").unwrap();
        let error = folder.rename("new", "old", false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(place.path().join("old")).unwrap(), b"old");
        folder.rename("new", "old", true).unwrap();
        assert_eq!(std::fs::read(place.path().join("old")).unwrap(), b"new");
        assert_eq!(folder.look("new").unwrap(), None);
    }

    #[test]
    fn no_program_changes_its_user() {
        let (place, folder) = folder();
        let file = folder.write("file").unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        set(&file, Attributes { mode: Some(0o6755), modified: Some((1_000_000_000, 5)) }).unwrap();
        let about = std::fs::metadata(place.path().join("file")).unwrap();
        assert_eq!(about.permissions().mode() & 0o7000, 0);
        assert_eq!(about.permissions().mode() & 0o700, 0o700);
        let modified = about.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(modified.as_nanos(), 1_000_000_000_000_000_005);
    }

    #[test]
    fn the_last_percent_of_a_disk_is_kept() {
        let (_place, folder) = folder();
        let mut disk = fs::fstatvfs(&folder.fd).unwrap();
        (disk.f_frsize, disk.f_blocks, disk.f_bavail) = (4096, 1000, 100);
        (disk.f_files, disk.f_favail) = (1000, 11);
        assert_eq!(usable(&disk), 90 * 4096);
        disk.f_favail = 10;
        assert_eq!(usable(&disk), 0, "one percent of the inodes is in reserve");
        (disk.f_files, disk.f_favail) = (0, 0);
        assert_eq!(usable(&disk), 90 * 4096);
        disk.f_bavail = 5;
        assert_eq!(usable(&disk), 0);
        (disk.f_blocks, disk.f_bavail) = (1 << 40, 1 << 20);
        assert_eq!(usable(&disk), (4 << 30) - RESERVE);
    }
}
