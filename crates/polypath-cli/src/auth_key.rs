//! The command line's options for the endpoint pair shared key that authenticates chunks (RFC
//! 4895).

use std::fs;
use std::path::PathBuf;

use polypath::{Association, AuthKeys, ChunkTypes, Config};

use crate::failure::Failure;

/// Chunk types that must be authenticated: a peer without the key can neither open an association
/// nor send data into one.
const DEMANDED: &str = "data,sack,cookie-echo,cookie-ack";

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct KeyOptions {
    /// Authenticate chunks with the secret in the first line of this file
    ///
    /// This is the endpoint pair shared key of RFC 4895. It also works with --raw and --plain.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    auth_key_file: Option<PathBuf>,
    /// Number of that key, the same on both sides
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NUMBER",
        default_value_t = 1,
        requires = "auth_key_file"
    )]
    auth_key_number: u16,
}

impl KeyOptions {
    /// The key alone: with another key, such as the empty one, peers would not need this one.
    pub(crate) fn keys(&self) -> Result<AuthKeys, Failure> {
        let mut keys = AuthKeys::default();
        let Some(path) = &self.auth_key_file else { return Ok(keys) };
        let text = fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
        let secret = text.lines().next().unwrap_or_default();
        if secret.is_empty() {
            return Err(Failure::usage(format!("the first line of {} is empty", path.display()))
                .hint("--auth-key-file needs a file whose first line is the shared secret"));
        }
        let number = self.auth_key_number;
        keys.set(number, secret.as_bytes())
            .and_then(|()| keys.activate(number))
            .and_then(|()| if number == 0 { Ok(()) } else { keys.delete(0) })
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        Ok(keys)
    }

    /// The configuration, with authentication required if a key was given.
    pub(crate) fn demand(&self, config: Config) -> Result<Config, Failure> {
        if self.auth_key_file.is_none() {
            return Ok(config);
        }
        let demanded: ChunkTypes = DEMANDED.parse().map_err(Failure::usage)?;
        let demanded = demanded.or(config.authenticated_chunks());
        let builder = config.to_builder().authentication(true).authenticated_chunks(demanded);
        builder.build().map_err(|error| Failure::usage(error.to_string()))
    }

    /// Fails if a key was given and the peer does not authenticate chunks.
    pub(crate) fn check(&self, host: &str, association: &Association) -> Result<(), Failure> {
        if self.auth_key_file.is_none() || association.auth_chunks().is_some() {
            return Ok(());
        }
        Err(Failure::new(format!("{host} does not authenticate chunks"))
            .hint("its SCTP does not support authentication, or it is turned off there"))
    }

    /// The failure when `host` answered the INIT but not the COOKIE ECHO, which is the first
    /// authenticated chunk.
    pub(crate) fn unanswered(&self, host: &str) -> Failure {
        if self.auth_key_file.is_some() {
            return Failure::new(format!(
                "{host} answers, but has not the same authentication key"
            ))
            .hint("--auth-key-file and --auth-key-number must be the same on both sides");
        }
        Failure::new(format!("{host} answers, but does not complete the handshake"))
            .hint("it may require --auth-key-file")
    }
}
