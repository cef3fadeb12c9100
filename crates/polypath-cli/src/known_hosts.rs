//! The hosts connected to before: one line per host with its names and addresses, UDP port and
//! fingerprint.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use polypath::{Fingerprint, KnownFingerprint};
use polypath_apps::private;

use crate::failure::Failure;
use crate::trust;

const HOSTS: &str = "known_hosts";

/// The file of known hosts.
#[derive(Clone, Debug)]
pub(crate) struct KnownHosts {
    path: PathBuf,
}

/// A line of the file.
struct Line<'a> {
    names: Vec<&'a str>,
    port: u16,
    known: &'a str,
}

fn parse(line: &str) -> Option<Line<'_>> {
    let mut words = line.split_whitespace();
    let names = words.next().filter(|first| !first.starts_with('#'))?.split(',').collect();
    let port = words.next()?.parse().ok()?;
    Some(Line { names, port, known: words.next()? })
}

impl KnownHosts {
    pub(crate) fn open() -> Result<Self, Failure> {
        Ok(Self { path: trust::folder()?.join(HOSTS) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The known fingerprint of a host that has one of these names.
    pub(crate) fn find(
        &self,
        names: &[String],
        port: u16,
    ) -> Result<Option<KnownFingerprint>, Failure> {
        let mut found: Option<KnownFingerprint> = None;
        for (number, line) in read(&self.path)?.lines().enumerate() {
            let Some(line) = parse(line) else { continue };
            if line.port != port || !names.iter().any(|name| line.names.contains(&name.as_str())) {
                continue;
            }
            let known: KnownFingerprint = line.known.parse().map_err(|_| {
                Failure::new(format!(
                    "line {} of {} has no valid fingerprint",
                    number + 1,
                    self.path.display()
                ))
            })?;
            if found.as_ref().is_some_and(|found| *found != known) {
                return Err(Failure::new(format!(
                    "{} belong to different hosts in {}",
                    names.join(", "),
                    self.path.display()
                )));
            }
            found = Some(known);
        }
        Ok(found)
    }

    /// Stores the names of a host. A name that another host has stays that host's.
    pub(crate) fn add(
        &self,
        names: &[String],
        port: u16,
        peer: Fingerprint,
    ) -> Result<(), Failure> {
        let failed = |error| Failure::file("write", &self.path, &error);
        let folder = self.path.parent().unwrap_or_else(|| Path::new("."));
        trust::make_folder(folder)?;
        // Other processes may add a host at the same time.
        let lock = new_file(&folder.join(".known_hosts.lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let text = read(&self.path)?;
        let full = peer.to_string();
        let taken = |name: &str| {
            let lines = text.lines().filter_map(parse);
            lines.filter(|line| line.port == port).any(|line| line.names.contains(&name))
        };
        let new: Vec<&str> = names.iter().map(String::as_str).filter(|name| !taken(name)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut added = false;
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            match parse(line) {
                Some(Line { names, port: at, known }) if !added && at == port && known == full => {
                    added = true;
                    let all = [&names[..], &new[..]].concat();
                    lines.push(format!("{} {port} {full}", all.join(",")));
                }
                _ => lines.push(line.to_owned()),
            }
        }
        if !added {
            lines.push(format!("{} {port} {full}", new.join(",")));
        }
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all((lines.join("\n") + "\n").as_bytes()).map_err(failed)?;
        file.persist(&self.path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// The file of peers that a service accepts without a code phrase.
fn peers_file(service: &str) -> Result<PathBuf, Failure> {
    Ok(trust::folder()?.join(match service {
        "files" => "known_senders".to_owned(),
        service => format!("known_{service}_clients"),
    }))
}

/// Fingerprints of the peers that a service accepts without a code phrase: the first word of each
/// line.
pub(crate) fn peers(service: &str) -> Result<Vec<KnownFingerprint>, Failure> {
    let path = peers_file(service)?;
    let mut known = Vec::new();
    for (number, line) in read(&path)?.lines().enumerate() {
        let Some(word) = line.split_whitespace().next() else { continue };
        if !word.starts_with('#') {
            known.push(word.parse().map_err(|_| {
                let number = number + 1;
                Failure::new(format!(
                    "line {number} of {} has no valid fingerprint",
                    path.display()
                ))
            })?);
        }
    }
    Ok(known)
}

/// Stores the fingerprint of a peer; `comment` is for people.
pub(crate) fn add_peer(service: &str, peer: Fingerprint, comment: &str) -> Result<(), Failure> {
    if peers(service)?.iter().any(|known| known.matches(&peer)) {
        return Ok(());
    }
    trust::make_folder(&trust::folder()?)?;
    let path = peers_file(service)?;
    let failed = |error| Failure::file("write", &path, &error);
    // A single write, because other processes may append at the same time.
    new_file(&path)
        .and_then(|mut file| file.write_all(format!("{peer} {comment}\n").as_bytes()))
        .map_err(failed)
}

fn new_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// The text of a file that decides whom to trust; empty if it does not exist.
fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::file("read", path, &error);
    if let Some(problem) = private::problem(path).map_err(failed)? {
        return Err(Failure::new(format!("{}: {problem}", path.display()))
            .hint("hosts in this file are trusted: run chmod go-w, and chown to this user"));
    }
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn hosts_are_known_by_all_names_and_by_port() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = KnownHosts { path: folder.path().join(HOSTS) };
        let find = |name: &str, port| hosts.find(&names(&[name]), port).unwrap();
        assert_eq!(find("here", 1), None);
        let (one, other) = (Fingerprint::of(b"one"), Fingerprint::of(b"other"));
        hosts.add(&names(&["here", "10.0.0.1"]), 1, one).unwrap();
        hosts.add(&names(&["here"]), 2, other).unwrap();
        for name in ["here", "10.0.0.1"] {
            assert!(find(name, 1).unwrap().matches(&one));
        }
        assert!(find("here", 2).unwrap().matches(&other));
        assert_eq!(find("there", 1), None);
        // Another name of a known host, and a name that another host has.
        hosts.add(&names(&["10.0.0.1", "10.0.0.2"]), 1, one).unwrap();
        hosts.add(&names(&["10.0.0.1", "10.0.0.3"]), 1, other).unwrap();
        assert!(find("10.0.0.2", 1).unwrap().matches(&one));
        assert!(find("10.0.0.1", 1).unwrap().matches(&one));
        assert!(find("10.0.0.3", 1).unwrap().matches(&other));
        assert_eq!(fs::read_to_string(&hosts.path).unwrap().lines().count(), 3);
        let both = hosts.find(&names(&["10.0.0.1", "10.0.0.3"]), 1).unwrap_err().to_string();
        assert!(both.contains("belong to different hosts"), "{both}");
    }

    #[test]
    fn the_file_must_be_sound_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = KnownHosts { path: folder.path().join(HOSTS) };
        fs::write(&hosts.path, "\n# comment\nhere 3 nonsense\n").unwrap();
        let failure = hosts.find(&names(&["here"]), 3).unwrap_err().to_string();
        assert!(failure.contains("line 3 of"), "{failure}");
        fs::set_permissions(&hosts.path, fs::Permissions::from_mode(0o666)).unwrap();
        let failure = hosts.find(&names(&["other"]), 3).unwrap_err().to_string();
        assert!(failure.contains("other users may write"), "{failure}");
    }
}
