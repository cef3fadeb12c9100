//! The hosts connected to before: one line per host with its names and addresses, UDP port and
//! fingerprint.

use std::fs::{self, OpenOptions};
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
    /// The fingerprint as written.
    text: &'a str,
    known: KnownFingerprint,
}

/// Parses the text of the file: its lines, `None` for comments and empty ones. A line that cannot
/// be read is an error: without it, a known host would seem to be new.
fn parse<'a>(path: &Path, text: &'a str) -> Result<Vec<(&'a str, Option<Line<'a>>)>, Failure> {
    let numbered = text.lines().enumerate();
    numbered
        .map(|(number, line)| {
            if is_comment(line) {
                return Ok((line, None));
            }
            let parsed = parse_line(line).ok_or_else(|| {
                damaged(path, number, "expected names, UDP port and fingerprint of a host")
            })?;
            Ok((line, Some(parsed)))
        })
        .collect()
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn parse_line(line: &str) -> Option<Line<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [names, port, known] = words[..] else { return None };
    let names: Vec<&str> = names.split(',').collect();
    let is_sound = names.iter().all(|name| !name.is_empty());
    let line = Line { names, port: port.parse().ok()?, text: known, known: known.parse().ok()? };
    is_sound.then_some(line)
}

/// The failure for a line that cannot be read.
fn damaged(path: &Path, number: usize, expected: &str) -> Failure {
    Failure::new(format!("line {} of {} is damaged: {expected}", number + 1, path.display()))
        .hint("repair or remove the line; a host without one is a new contact")
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
        let text = read(&self.path)?;
        for (_, line) in parse(&self.path, &text)? {
            let Some(line) = line else { continue };
            if line.port != port || !names.iter().any(|name| line.names.contains(&name.as_str())) {
                continue;
            }
            if found.as_ref().is_some_and(|found| *found != line.known) {
                return Err(Failure::new(format!(
                    "{} belong to different hosts in {}",
                    names.join(", "),
                    self.path.display()
                )));
            }
            found = Some(line.known);
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
        update(&self.path, |text| {
            let lines = parse(&self.path, text)?;
            let full = peer.to_string();
            let taken = |name: &str| {
                let mut lines = lines.iter().filter_map(|(_, line)| line.as_ref());
                lines.any(|line| line.port == port && line.names.contains(&name))
            };
            let new: Vec<&str> =
                names.iter().map(String::as_str).filter(|name| !taken(name)).collect();
            if new.is_empty() {
                return Ok(None);
            }
            let mut added = false;
            let mut written: Vec<String> = Vec::new();
            for (text, line) in &lines {
                match line {
                    Some(line) if !added && line.port == port && line.text == full => {
                        added = true;
                        let all = [&line.names[..], &new[..]].concat();
                        written.push(format!("{} {port} {full}", all.join(",")));
                    }
                    _ => written.push((*text).to_owned()),
                }
            }
            if !added {
                written.push(format!("{} {port} {full}", new.join(",")));
            }
            Ok(Some(written.join("\n") + "\n"))
        })
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
    parse_peers(&path, &read(&path)?)
}

fn parse_peers(path: &Path, text: &str) -> Result<Vec<KnownFingerprint>, Failure> {
    let mut known = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !is_comment(line)) {
        let word = line.split_whitespace().next().unwrap_or_default();
        let parsed = word.parse();
        known.push(parsed.map_err(|_| damaged(path, number, "expected a fingerprint"))?);
    }
    Ok(known)
}

/// Stores the fingerprint of a peer; `comment` is for people.
pub(crate) fn add_peer(service: &str, peer: Fingerprint, comment: &str) -> Result<(), Failure> {
    let path = peers_file(service)?;
    update(&path, |text| {
        if parse_peers(&path, text)?.iter().any(|known| known.matches(&peer)) {
            return Ok(None);
        }
        let mut text = text.to_owned();
        if !(text.is_empty() || text.ends_with('\n')) {
            text.push('\n');
        }
        Ok(Some(format!("{text}{peer} {comment}\n")))
    })
}

/// Replaces the text of a file by what `change` makes of it, `None` for no change. Other processes
/// may do the same at the same time, and find the old or the new text, never a part of it.
fn update(
    path: &Path,
    change: impl FnOnce(&str) -> Result<Option<String>, Failure>,
) -> Result<(), Failure> {
    let failed = |error| Failure::file("write", path, &error);
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    trust::make_folder(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lock = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(folder.join(format!(".{name}.lock")))
        .map_err(failed)?;
    lock.lock().map_err(failed)?;
    let Some(text) = change(&read(path)?)? else { return Ok(()) };
    // A symbolic link stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut file =
        tempfile::NamedTempFile::new_in(target.parent().unwrap_or(folder)).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
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
        let full = Fingerprint::of(b"one").to_string();
        let sound = format!("\n # comment\nhere,10.0.0.1 3 {full}\n");
        for damaged in [
            "there".to_owned(),
            "there 3".to_owned(),
            "there 3 nonsense".to_owned(),
            format!("there 3 {}", &full[..full.len() - 1]),
            format!("there port {full}"),
            format!("there, 3 {full}"),
            // Two lines without the break between them.
            format!("there 3 {full}elsewhere 3 {full}"),
            "\0\0\0\0".to_owned(),
        ] {
            fs::write(&hosts.path, format!("{sound}{damaged}\n")).unwrap();
            // Even for a host that has a line of its own.
            let failure = hosts.find(&names(&["here"]), 3).unwrap_err().to_string();
            assert!(failure.contains("line 4 of") && failure.contains("is damaged"), "{failure}");
            let failure = hosts.add(&names(&["new"]), 3, Fingerprint::of(b"two")).unwrap_err();
            assert!(failure.to_string().contains("line 4 of"), "{failure}");
            assert_eq!(fs::read_to_string(&hosts.path).unwrap(), format!("{sound}{damaged}\n"));
        }
        fs::write(&hosts.path, &sound).unwrap();
        assert!(hosts.find(&names(&["here"]), 3).unwrap().is_some());
        fs::set_permissions(&hosts.path, fs::Permissions::from_mode(0o666)).unwrap();
        let failure = hosts.find(&names(&["other"]), 3).unwrap_err().to_string();
        assert!(failure.contains("other users may write"), "{failure}");
    }

    /// Each of many writers at the same time finds its line in the file.
    #[test]
    fn writers_do_not_lose_the_lines_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = KnownHosts { path: folder.path().join("deep").join(HOSTS) };
        std::thread::scope(|scope| {
            for writer in 0..8u8 {
                let hosts = &hosts;
                scope.spawn(move || {
                    for number in 0..10u8 {
                        let peer = Fingerprint::of(&[writer, number]);
                        let name = format!("host-{writer}-{number}");
                        hosts.add(&names(&[&name, "shared"]), 1, peer).unwrap();
                        assert!(hosts.find(&names(&[&name]), 1).unwrap().unwrap().matches(&peer));
                    }
                });
            }
        });
        let text = fs::read_to_string(&hosts.path).unwrap();
        assert_eq!(parse(&hosts.path, &text).unwrap().len(), 80);
        assert_eq!(text.matches("shared").count(), 1);
    }

    /// A file that is kept elsewhere stays there.
    #[test]
    fn a_link_to_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = KnownHosts { path: folder.path().join(HOSTS) };
        let kept = folder.path().join("kept");
        fs::write(&kept, "# mine\n").unwrap();
        std::os::unix::fs::symlink(&kept, &hosts.path).unwrap();
        hosts.add(&names(&["here"]), 1, Fingerprint::of(b"one")).unwrap();
        assert!(fs::symlink_metadata(&hosts.path).unwrap().is_symlink());
        let text = fs::read_to_string(&kept).unwrap();
        assert!(text.starts_with("# mine\nhere 1 "), "{text}");
    }
}
