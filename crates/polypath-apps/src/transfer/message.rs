//! Messages of a transfer, after consent.
//!
//! The sender's messages are ordered on stream 1, the receiver's on stream 0. The payload protocol
//! identifier gives the type of a message; all but the bytes and the digests are JSON.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use polypath::{Message, Ppid, Received, StreamId};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::transfer::digest::{DIGEST, MOST_BLOCKS};
use crate::wire::{json, parse, shown, whole};

/// Stream of the receiver's messages.
pub(crate) const CONTROL: StreamId = StreamId(0);
/// Stream of the sender's messages.
pub(crate) const FILES: StreamId = StreamId(1);

/// Maximum bytes of a file in a message.
pub(crate) const CHUNK: usize = 64 << 10;
/// Maximum number of entries that are announced and not yet complete or rejected.
pub(crate) const MOST_OPEN: usize = 64;

const BYTES: Ppid = Ppid(0x7066_0002);
const BEGIN: Ppid = Ppid(0x7066_0010);
const ENTRY: Ppid = Ppid(0x7066_0011);
const BLOCKS: Ppid = Ppid(0x7066_0012);
const START: Ppid = Ppid(0x7066_0013);
const END: Ppid = Ppid(0x7066_0014);
const BROKEN: Ppid = Ppid(0x7066_0015);
const CLOSE: Ppid = Ppid(0x7066_0016);
const FINISH: Ppid = Ppid(0x7066_0017);
const ALIVE: Ppid = Ppid(0x7066_0018);
const REPLY: Ppid = Ppid(0x7066_0020);

/// Announces a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// What is sent, for people: the name of the file or folder, and how many more.
    pub name: String,
    /// Total size of all files in bytes; `None` if it is not known.
    pub size: Option<u64>,
    /// Number of entries.
    pub entries: u64,
    /// The first names of all paths, at most 64 of them.
    pub tops: Vec<String>,
}

/// Announces an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the entry: each is larger than the one before.
    pub id: u64,
    /// Names of its folders, and its own.
    pub path: Vec<String>,
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Time of the last change: seconds since 1970, and nanoseconds.
    pub modified: Option<(i64, u32)>,
}

/// Kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A regular file with this many bytes; `None` if the number is not known in advance.
    File(Option<u64>),
    /// A folder.
    Folder,
    /// A symbolic link with this target.
    Link(String),
}

/// Ends a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Number of the entry.
    pub id: u64,
    /// Bytes of the whole file.
    pub size: u64,
    /// SHA-256 of the whole file in hexadecimal.
    pub sha256: String,
}

/// The number of an entry with an offset into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Number of the entry.
    pub id: u64,
    /// Offset in bytes.
    pub offset: u64,
}

/// The number of an entry with a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Number of the entry.
    pub id: u64,
    /// The reason, for people.
    pub reason: String,
}

/// Digests of the blocks of a file, from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Number of the entry.
    pub id: u64,
    /// One digest for each block.
    pub digests: Vec<[u8; DIGEST]>,
}

/// A message of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromSender {
    /// Sent first.
    Begin(Begin),
    /// Announces an entry.
    Entry(Entry),
    /// Answers [`Reply::Have`].
    Blocks(Blocks),
    /// The bytes of this file follow, from the offset that the receiver has requested.
    Start(Place),
    /// Bytes of the file.
    Bytes(Bytes),
    /// The file is complete.
    End(End),
    /// The sender cannot send the file, or no more of it.
    Broken(Reason),
    /// Everything in this folder is complete: sets its attributes again.
    Close(Entry),
    /// There are no more entries, and the receiver has replied to all of them.
    Finish,
    /// The sender has nothing to send at the moment.
    Alive,
}

/// A message of the receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// An earlier run has left this many bytes of the file: the receiver needs the digests of
    /// blocks of `block` bytes up to there.
    Have {
        /// Number of the entry.
        id: u64,
        /// Bytes that the receiver has.
        bytes: u64,
        /// Bytes of a block.
        block: u64,
    },
    /// The receiver needs the bytes from this offset on.
    From(Place),
    /// The entry is complete.
    Done {
        /// Number of the entry.
        id: u64,
    },
    /// The entry is rejected.
    Refused(Reason),
    /// Everything is complete.
    Finished,
    /// The receiver is busy.
    Alive,
    /// The transfer has failed.
    Error(String),
}

impl FromSender {
    /// The message to send.
    pub fn message(self) -> Message {
        let (ppid, payload) = match self {
            Self::Begin(begin) => (BEGIN, json(&begin)),
            Self::Entry(entry) => (ENTRY, json(&entry)),
            Self::Blocks(Blocks { id, digests }) => {
                let mut payload = BytesMut::with_capacity(8 + DIGEST * digests.len());
                payload.put_u64(id);
                digests.iter().for_each(|digest| payload.put_slice(digest));
                (BLOCKS, payload.freeze())
            }
            Self::Start(place) => (START, json(&place)),
            Self::Bytes(bytes) => (BYTES, bytes),
            Self::End(end) => (END, json(&end)),
            Self::Broken(reason) => (BROKEN, json(&reason)),
            Self::Close(entry) => (CLOSE, json(&entry)),
            Self::Finish => (FINISH, Bytes::from_static(b"{}")),
            Self::Alive => (ALIVE, Bytes::from_static(b"{}")),
        };
        Message { ppid, ..Message::new(FILES, payload) }
    }

    /// Reads a message.
    pub(crate) fn read(received: Received) -> Result<Self, Error> {
        // File bytes may arrive in pieces of a message, others only whole.
        let Received { stream, ppid, payload, .. } = whole(received, Some(BYTES))?;
        if stream != FILES {
            return Err(stranger(stream, ppid));
        }
        Ok(match ppid {
            BYTES => Self::Bytes(payload),
            BEGIN => Self::Begin(parse(&payload)?),
            ENTRY => Self::Entry(parse(&payload)?),
            BLOCKS => Self::Blocks(blocks(payload)?),
            START => Self::Start(parse(&payload)?),
            END => Self::End(parse(&payload)?),
            BROKEN => {
                let Reason { id, reason } = parse(&payload)?;
                Self::Broken(Reason { id, reason: shown(&reason) })
            }
            CLOSE => Self::Close(parse(&payload)?),
            FINISH => Self::Finish,
            ALIVE => Self::Alive,
            _ => return Err(stranger(stream, ppid)),
        })
    }
}

impl Reply {
    /// The message to send.
    pub(crate) fn message(&self) -> Message {
        Message { ppid: REPLY, ..Message::new(CONTROL, json(self)) }
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// It is not a message of a receiver.
    pub fn read(received: Received) -> Result<Self, Error> {
        let Received { stream, ppid, payload, .. } = whole(received, None)?;
        if (stream, ppid) != (CONTROL, REPLY) {
            return Err(stranger(stream, ppid));
        }
        Ok(match parse(&payload)? {
            Self::Refused(Reason { id, reason }) => {
                Self::Refused(Reason { id, reason: shown(&reason) })
            }
            Self::Error(reason) => Self::Error(shown(&reason)),
            reply => reply,
        })
    }
}

/// A message of another protocol.
pub(crate) fn stranger(stream: StreamId, ppid: Ppid) -> Error {
    Error::Protocol(format!(
        "the peer does not speak polypath's file protocol (message with PPID {ppid} on stream \
         {stream})"
    ))
}

fn blocks(mut payload: Bytes) -> Result<Blocks, Error> {
    let wrong = || Error::Protocol("a list of digests is malformed".to_owned());
    if payload.len() < 8 || payload.len() as u64 > 8 + MOST_BLOCKS * DIGEST as u64 {
        return Err(wrong());
    }
    let id = payload.get_u64();
    let (digests, []) = payload.as_chunks() else { return Err(wrong()) };
    Ok(Blocks { id, digests: digests.to_vec() })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn received(message: Message) -> Received {
        let Message { stream, ppid, unordered, payload, .. } = message;
        Received {
            stream,
            ppid,
            unordered,
            beginning: true,
            end: true,
            aborted: false,
            tsn: polypath::Tsn(0),
            cumulative_tsn: polypath::Tsn(0),
            mid: polypath::proto::Mid(0),
            payload,
        }
    }

    #[test]
    fn messages_survive_the_way() {
        let path = vec!["a \"b\"".to_owned(), "ü".to_owned()];
        let entry = |kind| Entry {
            id: 3,
            path: path.clone(),
            kind,
            mode: Some(0o640),
            modified: Some((-1, 999_999_999)),
        };
        for message in [
            FromSender::Begin(Begin {
                name: "x and 3 more".into(),
                size: None,
                entries: 4,
                tops: path.clone(),
            }),
            FromSender::Entry(entry(Kind::File(Some(u64::MAX)))),
            FromSender::Entry(entry(Kind::File(None))),
            FromSender::Entry(entry(Kind::Link("../x".into()))),
            FromSender::Blocks(Blocks { id: 7, digests: vec![[1; DIGEST], [2; DIGEST]] }),
            FromSender::Start(Place { id: 1, offset: 1 << 40 }),
            FromSender::Bytes(Bytes::from_static(b"\0\xff")),
            FromSender::End(End { id: 1, size: 0, sha256: "00".repeat(32) }),
            FromSender::Broken(Reason { id: 1, reason: "no such file".into() }),
            FromSender::Close(entry(Kind::Folder)),
            FromSender::Finish,
            FromSender::Alive,
        ] {
            let there = FromSender::read(received(message.clone().message())).unwrap();
            assert_eq!(there, message);
        }
        for reply in [
            Reply::Have { id: 1, bytes: 2, block: 3 },
            Reply::From(Place { id: 1, offset: 2 }),
            Reply::Done { id: 1 },
            Reply::Refused(Reason { id: 1, reason: "it is a hidden name".into() }),
            Reply::Finished,
            Reply::Alive,
            Reply::Error("no space left on device".into()),
        ] {
            assert_eq!(Reply::read(received(reply.message())).unwrap(), reply);
        }
    }

    #[test]
    fn reasons_do_not_disturb_a_terminal() {
        let reply = Reply::Error(format!("\u{1b}[2J\n{}", "x".repeat(1000)));
        let Reply::Error(reason) = Reply::read(received(reply.message())).unwrap() else {
            panic!("another message");
        };
        assert!(reason.len() <= 500 && !reason.contains(char::is_control), "{reason}");
    }

    #[test]
    fn pieces_and_abandoned_messages_are_rejected() {
        let piece = Received { end: false, ..received(FromSender::Finish.message()) };
        assert!(FromSender::read(piece).is_err());
        let bytes = FromSender::Bytes(Bytes::from_static(b"x")).message();
        let aborted = Received { aborted: true, ..received(bytes.clone()) };
        assert!(FromSender::read(aborted).is_err());
        let piece = Received { beginning: false, ..received(bytes) };
        assert_eq!(FromSender::read(piece).unwrap(), FromSender::Bytes(Bytes::from_static(b"x")));
    }

    proptest! {
        /// Arbitrary bytes of any type are a message or an error.
        #[test]
        fn nothing_panics(ppid in prop_oneof![
            Just(0x7066_0002), 0x7066_0010_u32..0x7066_0022, any::<u32>()
        ], stream in 0..3u16, payload in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            r#"\{"(id|path|kind|name|size)":[0-9a-z"\[\]{}:,-]{0,40}\}"#.prop_map(String::into_bytes),
        ]) {
            let message = Message { ppid: Ppid(ppid), ..Message::new(StreamId(stream), payload) };
            let _ = FromSender::read(received(message.clone()));
            let _ = Reply::read(received(message));
        }
    }
}
