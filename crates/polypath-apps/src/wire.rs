//! What the messages of all applications have in common.

use bytes::Bytes;
use polypath::{Ppid, Received};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// Characters without a shape that reorder or hide others: marks and overrides of direction, zero
/// width characters, separators of lines and paragraphs.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Maximum bytes of a message in JSON: a path of 4096 bytes has at most six times as many.
const MOST: usize = 32 << 10;
/// Maximum characters of a reason that is shown to a person.
const MOST_REASON: usize = 500;

/// A reason that the peer has sent, without what could disturb a terminal.
pub(crate) fn shown(text: &str) -> String {
    let shown = |c: char| if c.is_control() || is_invisible(c) { ' ' } else { c };
    text.trim().chars().map(shown).take(MOST_REASON).collect()
}

pub(crate) fn json(part: &impl Serialize) -> Bytes {
    // Strings and numbers always serialize.
    serde_json::to_vec(part).unwrap_or_default().into()
}

/// Parses a message in JSON.
pub(crate) fn parse<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Error> {
    if payload.len() > MOST {
        return Err(Error::Protocol("a message is too large".to_owned()));
    }
    serde_json::from_slice(payload)
        .map_err(|error| Error::Protocol(shown(&format!("a message cannot be read: {error}"))))
}

/// Rejects a message that was given up, or that is not whole unless it has the type `pieces`.
pub(crate) fn whole(received: Received, pieces: Option<Ppid>) -> Result<Received, Error> {
    if received.aborted {
        return Err(Error::Protocol("the peer abandoned a message".to_owned()));
    }
    if !(received.beginning && received.end) && Some(received.ppid) != pieces {
        return Err(Error::Protocol("a message is larger than the receive buffer".to_owned()));
    }
    Ok(received)
}
