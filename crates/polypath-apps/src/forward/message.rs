//! Messages of the forwarding protocol.

use std::fmt;
use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use polypath::{Message, Ppid, Received, StreamId};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::wire::{json, parse, whole};

const OPEN: Ppid = Ppid(0x7077_0001);
const OPENED: Ppid = Ppid(0x7077_0002);
const FAILED: Ppid = Ppid(0x7077_0003);
const DATA: Ppid = Ppid(0x7077_0004);
const WINDOW: Ppid = Ppid(0x7077_0005);
const END: Ppid = Ppid(0x7077_0006);
const RESET: Ppid = Ppid(0x7077_0007);
const LISTEN: Ppid = Ppid(0x7077_0008);
const LISTENING: Ppid = Ppid(0x7077_0009);

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why a connection did not come about, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The rules of the other side exclude it.
    NotAllowed,
    /// Nothing listens on that port.
    Refused,
    /// There is no way to the host.
    Unreachable,
    /// The host does not answer.
    TimedOut,
    /// The name has no address.
    UnknownHost,
    /// The connection was reset.
    Reset,
    /// There are too many connections.
    TooMany,
    /// Anything else.
    #[serde(other)]
    Other,
}

impl Failure {
    /// The failure for an error of the operating system.
    pub fn of(error: &io::Error) -> Self {
        use rustix::io::Errno;
        match error.kind() {
            _ if matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE)) => {
                Self::TooMany
            }
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Self::Unreachable,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted => Self::Reset,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAllowed => "its rules do not allow it",
            Self::Refused => "connection refused",
            Self::Unreachable => "no route to the host",
            Self::TimedOut => "no reply",
            Self::UnknownHost => "the name has no address",
            Self::Reset => "connection reset",
            Self::TooMany => "too many connections",
            Self::Other => "the connection failed",
        })
    }
}

/// Opens a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// Number of the connection: resets refer to it, because streams are used again.
    pub(crate) serial: u64,
    pub(crate) to: To,
}

/// Where the other side connects to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum To {
    /// A host and a port.
    Target(Target),
    /// The connection has come in on a port that the other side has requested.
    Listener(u64),
}

/// Requests a port on the other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listen {
    pub(crate) listener: u64,
    /// Local address of that side, or a name; empty for its loopback address.
    pub(crate) bind: String,
    /// TCP port; 0 for any free one.
    pub(crate) port: u16,
}

/// The reply to [`Listen`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) listener: u64,
    pub(crate) port: Result<u16, String>,
}

/// End of a connection in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reset {
    pub(crate) serial: u64,
    pub(crate) failure: Failure,
}

/// Grants more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Number of the connection: the stream may have been used again.
    pub(crate) serial: u64,
    /// Number of bytes.
    pub(crate) bytes: u64,
}

/// A message; all but those about listeners are about the connection of their stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Open(Open),
    /// The connection has come about.
    Opened,
    /// It has not.
    Failed(Failure),
    Data(Bytes),
    /// More bytes may be sent.
    Window(Window),
    /// This direction has ended.
    End,
    Reset(Reset),
    Listen(Listen),
    Listening(Listening),
}

impl Part {
    pub(crate) fn message(self, stream: StreamId) -> Message {
        let nothing = || Bytes::from_static(&[0]);
        let (ppid, payload) = match self {
            Self::Open(open) => (OPEN, json(&open)),
            Self::Opened => (OPENED, nothing()),
            Self::Failed(failure) => (FAILED, json(&failure)),
            Self::Data(bytes) => (DATA, bytes),
            Self::Window(Window { serial, bytes }) => {
                let mut payload = BytesMut::with_capacity(16);
                payload.put_u64(serial);
                payload.put_u64(bytes);
                (WINDOW, payload.freeze())
            }
            Self::End => (END, nothing()),
            Self::Reset(reset) => (RESET, json(&reset)),
            Self::Listen(listen) => (LISTEN, json(&listen)),
            Self::Listening(listening) => (LISTENING, json(&listening)),
        };
        Message { ppid, ..Message::new(stream, payload) }
    }

    pub(crate) fn read(received: Received) -> Result<(StreamId, Self), Error> {
        let Received { stream, ppid, mut payload, .. } = whole(received, Some(DATA))?;
        let part = match ppid {
            DATA => Self::Data(payload),
            WINDOW if payload.len() == 16 => {
                Self::Window(Window { serial: payload.get_u64(), bytes: payload.get_u64() })
            }
            OPEN => Self::Open(parse(&payload)?),
            OPENED => Self::Opened,
            FAILED => Self::Failed(parse(&payload)?),
            END => Self::End,
            RESET => Self::Reset(parse(&payload)?),
            LISTEN => Self::Listen(parse(&payload)?),
            LISTENING => Self::Listening(parse(&payload)?),
            _ => {
                return Err(Error::Protocol(format!(
                    "unexpected message with PPID {ppid} on stream {stream}"
                )));
            }
        };
        Ok((stream, part))
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
        let target = Target { host: "::1".into(), port: 22 };
        assert_eq!(target.to_string(), "[::1]:22");
        for part in [
            Part::Open(Open { serial: 1 << 60, to: To::Target(target) }),
            Part::Open(Open { serial: 0, to: To::Listener(3) }),
            Part::Opened,
            Part::Failed(Failure::NotAllowed),
            Part::Data(Bytes::from_static(b"x")),
            Part::Window(Window { serial: 3, bytes: 1 << 20 }),
            Part::End,
            Part::Reset(Reset { serial: 7, failure: Failure::Reset }),
            Part::Listen(Listen { listener: 1, bind: String::new(), port: 0 }),
            Part::Listening(Listening { listener: 1, port: Err("in use".into()) }),
        ] {
            let message = part.clone().message(StreamId(5));
            assert_eq!(Part::read(received(message)).unwrap(), (StreamId(5), part));
        }
    }

    /// A failure that this version does not know is some failure.
    #[test]
    fn later_failures_are_understood() {
        assert_eq!(serde_json::from_str::<Failure>("\"on-fire\"").unwrap(), Failure::Other);
    }

    proptest! {
        #[test]
        fn nothing_panics(ppid in prop_oneof![0x7077_0000_u32..0x7077_000b, any::<u32>()],
                          payload in prop::collection::vec(any::<u8>(), 0..100)) {
            let message = Message { ppid: Ppid(ppid), ..Message::new(StreamId(1), payload) };
            let _ = Part::read(received(message));
        }
    }
}
