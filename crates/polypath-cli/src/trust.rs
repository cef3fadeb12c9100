//! Identity of this host and trust in its peers: the encryption options and the identity file.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use polypath::{Encryption, Identity, KeyLog, KnownFingerprint, Trust, Version};
use polypath_apps::consent::Phrase;

use crate::code;
use crate::failure::Failure;

const IDENTITY: &str = "identity.pem";

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Encryption")]
pub(crate) struct Options {
    /// Do not encrypt; --raw implies it
    #[arg(long)]
    pub(crate) plain: bool,
    /// Accept only the peer with this fingerprint; the short form is enough
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "plain")]
    pub(crate) fingerprint: Option<KnownFingerprint>,
    /// Accept only a peer that proves this secret
    ///
    /// Both sides need the same secret. Other users of this host can see it in the list of
    /// processes: prefer --psk-file.
    #[arg(long, hide_short_help = true, value_name = "SECRET", conflicts_with_all = ["plain", "fingerprint"])]
    pub(crate) psk: Option<String>,
    /// Accept only a peer that proves the secret in the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plain", "fingerprint", "psk"])]
    pub(crate) psk_file: Option<PathBuf>,
    /// File with this host's private key and certificate, in PEM
    ///
    /// Default: identity.pem in polypath's configuration directory, created if missing.
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with = "plain")]
    pub(crate) identity: Option<PathBuf>,
    /// Oldest DTLS version to accept: 1.2 or 1.3
    ///
    /// Some peers, such as those of WebRTC, have only 1.2.
    #[arg(long, hide_short_help = true, value_name = "VERSION", default_value_t = Version::Dtls13, conflicts_with = "plain")]
    pub(crate) min_dtls: Version,
    /// Append the secrets of all connections to this file, to decrypt captures
    ///
    /// In the format of NSS (SSLKEYLOGFILE), which Wireshark reads. A reader of this file and a
    /// capture can read everything that was sent.
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with = "plain")]
    pub(crate) key_log: Option<PathBuf>,
}

impl Options {
    /// The identity, and the trust in peers: `otherwise` unless options set it; `None` in clear.
    pub(crate) fn encryption(
        &self,
        raw: bool,
        otherwise: Trust,
    ) -> Result<Option<Encryption>, Failure> {
        if raw
            && (self.has_secret()
                || self.fingerprint.is_some()
                || self.min_dtls == Version::Dtls12
                || self.key_log.is_some())
        {
            return Err(no_raw());
        }
        if raw || self.plain {
            return Ok(None);
        }
        let trust = match &self.fingerprint {
            Some(known) => Trust::Known(vec![known.clone()]),
            None => otherwise,
        };
        let identity = match &self.identity {
            Some(path) => read_identity(path)?,
            None => own_identity(&folder()?)?,
        };
        Ok(Some(Encryption {
            minimum: self.min_dtls,
            key_log: self.key_log.as_deref().map(key_log).transpose()?,
            ..Encryption::new(identity, trust)
        }))
    }

    /// The shared secret, if one was given.
    pub(crate) fn secret(&self) -> Result<Option<Phrase>, Failure> {
        match (&self.psk_file, &self.psk) {
            (Some(path), _) => code::read(path).map(Some),
            (None, Some(text)) => code::parse(text, "the secret").map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Whether a shared secret replaces fingerprints.
    pub(crate) const fn has_secret(&self) -> bool {
        self.psk.is_some() || self.psk_file.is_some()
    }

    /// Whether known hosts decide which certificate a peer must have.
    pub(crate) const fn asks_known_hosts(&self, raw: bool) -> bool {
        !(raw || self.plain) && self.fingerprint.is_none() && !self.has_secret()
    }
}

/// Appends the secrets of connections to a file that only this user can read. A disk that is full
/// ends the log and not the transfer.
fn key_log(path: &Path) -> Result<KeyLog, Failure> {
    let file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Failure::file("write", path, &error))?;
    Ok(KeyLog::new(move |line| {
        // In one call, because several processes may append to the file.
        let _ = (&file).write_all(format!("{line}\n").as_bytes());
    }))
}

fn no_raw() -> Failure {
    Failure::usage("--raw cannot be encrypted: IP protocol 132 carries no DTLS")
        .hint("omit --raw to send encrypted packets over UDP")
}

/// Polypath's configuration directory.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".config")))
        .map(|base| base.join("polypath"))
        .ok_or_else(|| {
            Failure::new("no directory for this host's key: HOME is not set")
                .hint("pass --identity FILE, or --plain to turn encryption off")
        })
}

/// The identity in polypath's directory, created if missing.
fn own_identity(folder: &Path) -> Result<Identity, Failure> {
    let path = folder.join(IDENTITY);
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        _ => return read_identity(&path),
    }
    let identity = Identity::generate().map_err(|error| Failure::new(error.to_string()))?;
    let failed = |error: io::Error| Failure::file("write", &path, &error);
    make_folder(folder)?;
    // Create the file atomically; if another process was faster, use its identity.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(identity.to_pem().as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(identity),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => read_identity(&path),
        Err(error) => Err(failed(error.error)),
    }
}

pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Failure::file("make", folder, &error))
}

fn read_identity(path: &Path) -> Result<Identity, Failure> {
    let failed = |error: io::Error| Failure::file("read", path, &error);
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Failure::new(format!(
            "{} has a private key that other users may read",
            path.display()
        ))
        .hint(format!("chmod 600 {}", path.display())));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    Identity::from_pem(&text)
        .map_err(|error| Failure::new(format!("cannot use {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_made_once_and_for_nobody_else() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("deep/polypath");
        let first = own_identity(&folder).unwrap();
        assert_eq!(own_identity(&folder).unwrap().fingerprint(), first.fingerprint());
        let path = folder.join(IDENTITY);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let failure = own_identity(&folder).unwrap_err().to_string();
        assert!(failure.contains("other users may read\nhint: chmod 600"), "{failure}");
    }

    #[test]
    fn a_broken_identity_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(IDENTITY);
        fs::write(&path, "nothing").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(own_identity(folder.path()).unwrap_err().to_string().contains("cannot use"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "nothing");
    }
}
