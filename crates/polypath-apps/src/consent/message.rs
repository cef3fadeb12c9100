//! Messages until consent, on stream 0.

use polypath::{Message, Ppid, Received, StreamId};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::wire::{json, parse, shown, whole};

/// Stream of these messages.
pub(crate) const CONTROL: StreamId = StreamId(0);

/// Version 1 of the file protocol announces a file by this identifier, and answers by the second.
const HELLO: Ppid = Ppid(0x7066_0001);
const ANSWER: Ppid = Ppid(0x7066_0004);
const WELCOME: Ppid = Ppid(0x7066_0030);
const SHARE: Ppid = Ppid(0x7066_0031);
const PROOF: Ppid = Ppid(0x7066_0032);

/// The first message of the side that opened the association.
///
/// A receiver of version 1 reads it as the announcement of a file, and reports the version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Newest version of the protocol that this side has.
    pub version: u32,
    /// Oldest one.
    #[serde(default)]
    pub oldest: Option<u32>,
    /// Name of the protocol; version 1 has only files.
    #[serde(default)]
    pub service: Option<String>,
    /// Whether this side has a code phrase.
    #[serde(default)]
    pub code: bool,
    /// Empty: nothing about the files is sent before consent.
    pub name: String,
    /// 0, as above.
    pub size: u64,
}

/// The reply to [`Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Version of the protocol that is used.
    pub version: u32,
    /// Whether the code phrase must be proved.
    pub code: bool,
}

/// A message until consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// First message.
    Hello(Hello),
    /// Reply to it.
    Welcome(Welcome),
    /// A side's message of the key exchange.
    Share(Vec<u8>),
    /// A side's proof.
    Proof(Vec<u8>),
    /// The peer is rejected, for this reason.
    Refused(String),
}

/// The reply of version 1.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Ok(String),
    Error(String),
}

impl Part {
    pub(crate) fn message(self) -> Message {
        let (ppid, payload) = match self {
            Self::Hello(hello) => (HELLO, json(&hello)),
            Self::Welcome(welcome) => (WELCOME, json(&welcome)),
            Self::Share(share) => (SHARE, share.into()),
            Self::Proof(proof) => (PROOF, proof.into()),
            Self::Refused(reason) => (ANSWER, json(&Answer::Error(reason))),
        };
        Message { ppid, ..Message::new(CONTROL, payload) }
    }

    pub(crate) fn read(received: Received) -> Result<Self, Error> {
        let Received { stream, ppid, payload, .. } = whole(received, None)?;
        match (stream, ppid) {
            (CONTROL, HELLO) => parse(&payload).map(Self::Hello),
            (CONTROL, WELCOME) => parse(&payload).map(Self::Welcome),
            (CONTROL, SHARE) => Ok(Self::Share(payload.to_vec())),
            (CONTROL, PROOF) => Ok(Self::Proof(payload.to_vec())),
            (CONTROL, ANSWER) => match parse(&payload)? {
                Answer::Error(reason) | Answer::Ok(reason) => Ok(Self::Refused(shown(&reason))),
            },
            _ => Err(Error::Protocol(format!(
                "the peer does not speak polypath's file protocol (message with PPID {ppid} on \
                 stream {stream})"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn received(message: Message) -> Received {
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
        let hello = Hello {
            version: 2,
            oldest: Some(2),
            service: Some("files".into()),
            code: true,
            name: String::new(),
            size: 0,
        };
        for part in [
            Part::Hello(hello),
            Part::Welcome(Welcome { version: 2, code: true }),
            Part::Share(vec![1; 33]),
            Part::Proof(vec![2; 32]),
            Part::Refused("the code phrase is wrong".into()),
        ] {
            assert_eq!(Part::read(received(part.clone().message())).unwrap(), part);
        }
    }

    /// What `polypath send` of version 1 sends first.
    #[test]
    fn the_first_message_of_version_1_is_understood() {
        let message = Message {
            ppid: Ppid(0x7066_0001),
            ..Message::new(CONTROL, r#"{"version":1,"name":"file","size":3}"#)
        };
        let Part::Hello(hello) = Part::read(received(message)).unwrap() else { panic!() };
        assert_eq!((hello.version, hello.service, hello.code), (1, None, false));
    }

    proptest! {
        #[test]
        fn nothing_panics(ppid in prop_oneof![
            Just(0x7066_0001), Just(0x7066_0004), 0x7066_0030_u32..0x7066_0034, any::<u32>()
        ], payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let message = Message { ppid: Ppid(ppid), ..Message::new(CONTROL, payload) };
            let _ = Part::read(received(message));
        }
    }
}
