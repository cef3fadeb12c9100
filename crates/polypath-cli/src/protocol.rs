//! The file transfer protocol.
//!
//! Stream 0 carries control messages, stream 1 the file: first a [`Header`] (sender, stream 0),
//! then the bytes as messages of at most [`CHUNK`] bytes, then a [`Trailer`] with the SHA-256 (both
//! on stream 1, in order). The receiver sends one answer on stream 0: its own digest when the file
//! is complete, or an error as soon as one occurs. After the answer the sender shuts the
//! association down. Messages other than file bytes are JSON; the payload protocol identifier gives
//! the type of a message.

use bytes::Bytes;
use polypath::{Message, Ppid, Received, StreamId};
use serde::{Deserialize, Serialize};

/// Side of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
}

/// Stream of the control messages.
pub(crate) const CONTROL: StreamId = StreamId(0);
/// Stream of the file's bytes and their digest.
pub(crate) const FILE: StreamId = StreamId(1);

/// Maximum bytes of the file in a message.
pub(crate) const CHUNK: usize = 64 << 10;

/// Version of this protocol.
pub(crate) const VERSION: u32 = 1;

/// Default SCTP port.
pub(crate) const SCTP_PORT: u16 = 9260;

const HEADER: Ppid = Ppid(0x7066_0001);
const BYTES: Ppid = Ppid(0x7066_0002);
const TRAILER: Ppid = Ppid(0x7066_0003);
const ANSWER: Ppid = Ppid(0x7066_0004);

/// Announces a file; sent first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// File name without directories.
    pub(crate) name: String,
    /// Size of the file in bytes.
    pub(crate) size: u64,
}

/// Ends a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trailer {
    /// Number of bytes that were sent.
    pub(crate) size: u64,
    /// SHA-256 of the bytes in hexadecimal.
    pub(crate) sha256: String,
}

/// The receiver's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    /// The file is complete, synced to disk and has its final name; the receiver's SHA-256.
    Ok(String),
    /// The transfer failed; the reason.
    Error(String),
}

/// A message of this protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Header(Header),
    Bytes(Bytes),
    Trailer(Trailer),
    Answer(Answer),
}

impl Part {
    pub(crate) fn message(self) -> Message {
        let json = |part: serde_json::Result<Vec<u8>>| {
            // Strings and numbers always serialize.
            Bytes::from(part.unwrap_or_default())
        };
        let (stream, ppid, payload) = match self {
            Self::Header(header) => (CONTROL, HEADER, json(serde_json::to_vec(&header))),
            Self::Bytes(bytes) => (FILE, BYTES, bytes),
            Self::Trailer(trailer) => (FILE, TRAILER, json(serde_json::to_vec(&trailer))),
            Self::Answer(answer) => (CONTROL, ANSWER, json(serde_json::to_vec(&answer))),
        };
        Message { ppid, ..Message::new(stream, payload) }
    }

    /// Parses a message; the error describes the problem with it.
    pub(crate) fn read(received: Received) -> Result<Self, String> {
        let Received { stream, ppid, beginning, end, aborted, payload, .. } = received;
        if aborted {
            return Err("the peer has given a message up".to_owned());
        }
        // File bytes may arrive in pieces of a message, other messages only whole.
        if (stream, ppid) != (FILE, BYTES) && !(beginning && end) {
            return Err("a message is larger than the receive buffer".to_owned());
        }
        let wrong = |error: serde_json::Error| format!("a message cannot be read: {error}");
        match (stream, ppid) {
            (FILE, BYTES) => Ok(Self::Bytes(payload)),
            (FILE, TRAILER) => serde_json::from_slice(&payload).map(Self::Trailer).map_err(wrong),
            (CONTROL, HEADER) => {
                let header: Header = serde_json::from_slice(&payload).map_err(wrong)?;
                if header.version == VERSION {
                    Ok(Self::Header(header))
                } else {
                    Err(format!("the file protocol has version {}, not {VERSION}", header.version))
                }
            }
            (CONTROL, ANSWER) => serde_json::from_slice(&payload).map(Self::Answer).map_err(wrong),
            _ => Err(format!(
                "the peer does not speak polypath's file protocol (message with PPID {ppid} on \
                 stream {stream})"
            )),
        }
    }
}

/// Reason why a file name from the peer is not acceptable; `None` if it is.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() || name == "." || name == ".." {
        Some("it names no file")
    } else if name.contains(['/', '\\']) {
        Some("it has a path separator")
    } else if name.chars().any(char::is_control) {
        Some("it has a control character")
    } else if name.len() > 255 {
        Some("it is longer than 255 bytes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(part: Part) -> Part {
        let Message { stream, ppid, unordered, payload, .. } = part.message();
        let received = Received {
            stream,
            ppid,
            unordered,
            beginning: true,
            end: true,
            aborted: false,
            mid: polypath::proto::Mid(0),
            payload,
        };
        Part::read(received).unwrap()
    }

    #[test]
    fn parts_survive_the_way() {
        let sha256 = "00".repeat(32);
        for part in [
            Part::Header(Header { version: VERSION, name: "a \"b\"".into(), size: u64::MAX }),
            Part::Bytes(Bytes::from_static(b"\0\xff")),
            Part::Trailer(Trailer { size: 0, sha256: sha256.clone() }),
            Part::Answer(Answer::Ok(sha256)),
            Part::Answer(Answer::Error("no space left on device".into())),
        ] {
            assert_eq!(there_and_back(part.clone()), part);
        }
    }

    #[test]
    fn strangers_are_told_apart() {
        let received = Received {
            stream: CONTROL,
            ppid: Ppid(0),
            unordered: false,
            beginning: true,
            end: true,
            aborted: false,
            mid: polypath::proto::Mid(0),
            payload: Bytes::from_static(b"GET / HTTP/1.1"),
        };
        assert!(Part::read(received.clone()).unwrap_err().contains("does not speak"));
        let broken = Received { ppid: HEADER, ..received };
        assert!(Part::read(broken).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn names_stay_in_their_folder() {
        for name in ["a", "a b", ".hidden", "ä", "a..b"] {
            assert_eq!(name_problem(name), None, "{name}");
        }
        for name in ["", ".", "..", "../a", "/a", "a/b", "a\\b", "a\nb", "a\0"] {
            assert!(name_problem(name).is_some(), "{name}");
        }
        assert!(name_problem(&"x".repeat(256)).is_some());
    }
}
