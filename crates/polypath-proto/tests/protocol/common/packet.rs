//! Sent packets as text and numbers that a test can compare.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_proto::wire::{Cause, Causes, Checksum, Chunk, GapBlock, Packet, cause_code};
use polypath_proto::{Ecn, Fragmentation, Time};

/// One chunk: its name, and its name with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A datagram that was sent. TSNs are counted from 1 for the sender's first one; a cumulative TSN
/// ack of 0 acknowledges nothing.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) tag: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) chunks: Vec<Said>,
    /// Whether the network delivers it.
    pub(crate) delivered: bool,
    pub(crate) fragmentation: Fragmentation,
    pub(crate) ecn: Ecn,
    sender_tsn: u32,
    receiver_tsn: u32,
}

/// A DATA chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataSeen {
    pub(crate) n: u32,
    pub(crate) stream: u16,
    pub(crate) ssn: u16,
    pub(crate) len: usize,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) end: bool,
}

/// A SACK chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SackSeen {
    pub(crate) cumulative: u32,
    pub(crate) rwnd: u32,
    pub(crate) gaps: Vec<(u16, u16)>,
    pub(crate) duplicates: Vec<u32>,
}

impl Sent {
    /// Whether the packet has such a chunk: "DATA" or "DATA 17".
    pub(crate) fn has(&self, what: &str) -> bool {
        self.chunks.iter().any(|c| c.name == what || c.text == what)
    }

    /// Its chunks in one line.
    pub(crate) fn text(&self) -> String {
        self.chunks.iter().map(|c| c.text.as_str()).collect::<Vec<_>>().join(" + ")
    }

    /// Milliseconds since the beginning.
    pub(crate) fn ms(&self) -> u64 {
        self.at.as_nanos() / 1_000_000
    }

    /// The network of its destination: the second byte of an IPv4 address, the second group of an
    /// IPv6 one.
    pub(crate) fn net(&self) -> u8 {
        net_of(&self.to)
    }

    pub(crate) fn parsed(&self) -> Vec<Chunk<'_>> {
        match Packet::parse(&self.bytes, Checksum::Ignore) {
            Ok(packet) => packet.chunks().flatten().collect(),
            Err(_) => Vec::new(),
        }
    }

    pub(crate) fn data(&self) -> Vec<DataSeen> {
        let mut seen = Vec::new();
        for chunk in self.parsed() {
            if let Chunk::IData(d) = chunk {
                seen.push(DataSeen {
                    n: relative(d.tsn.0, self.sender_tsn),
                    stream: d.stream.0,
                    ssn: d.mid.0 as u16,
                    len: d.payload.len(),
                    unordered: d.unordered,
                    beginning: d.beginning(),
                    end: d.end,
                });
            }
            if let Chunk::Data(d) = chunk {
                seen.push(DataSeen {
                    n: relative(d.tsn.0, self.sender_tsn),
                    stream: d.stream.0,
                    ssn: d.ssn.0,
                    len: d.payload.len(),
                    unordered: d.unordered,
                    beginning: d.beginning,
                    end: d.end,
                });
            }
        }
        seen
    }

    pub(crate) fn sack(&self) -> Option<SackSeen> {
        self.parsed().iter().find_map(|chunk| match chunk {
            Chunk::Sack(s) => Some(SackSeen {
                cumulative: relative(s.cumulative_tsn_ack.0, self.receiver_tsn),
                rwnd: s.a_rwnd,
                gaps: s.gaps().map(|GapBlock { start, end }| (start as u16, end as u16)).collect(),
                duplicates: s.duplicates().map(|t| relative(t.0, self.receiver_tsn)).collect(),
            }),
            _ => None,
        })
    }

    /// Codes of the error causes in its ABORT or ERROR.
    pub(crate) fn causes(&self) -> Vec<u16> {
        let list = self.parsed().iter().find_map(|chunk| match chunk {
            Chunk::Abort(a) => Some(a.causes),
            Chunk::Error(e) => Some(e.causes),
            _ => None,
        });
        list.iter().flat_map(|l| l.iter().flatten()).map(|c| c.code()).collect()
    }
}

pub(crate) fn net_of(address: &SocketAddr) -> u8 {
    match address {
        SocketAddr::V4(a) => a.ip().octets()[1],
        SocketAddr::V6(a) => a.ip().segments()[1] as u8,
    }
}

fn relative(tsn: u32, initial: u32) -> u32 {
    tsn.wrapping_sub(initial).wrapping_add(1)
}

/// Initial TSN and other side's tag of each verification tag, from the handshakes seen.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    tsn: BTreeMap<u32, u32>,
    /// Responder's tag to initiator's tag, from INIT ACKs.
    offered: BTreeMap<u32, u32>,
    /// Tag pairs in both directions, confirmed by COOKIE ECHOs.
    pairs: BTreeMap<u32, u32>,
}

impl Tags {
    /// Parses a datagram and stores the tags of its handshake chunks.
    pub(crate) fn read(
        &mut self,
        at: Time,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
    ) -> Sent {
        let mut sent = Sent {
            at,
            from,
            to,
            tag: 0,
            bytes: bytes.to_vec(),
            chunks: Vec::new(),
            delivered: true,
            fragmentation: Fragmentation::System,
            ecn: Ecn::NotEct,
            sender_tsn: 1,
            receiver_tsn: 1,
        };
        let Ok(packet) = Packet::parse(bytes, Checksum::Ignore) else { return sent };
        sent.tag = packet.header().verification_tag.0;
        for chunk in packet.chunks().flatten() {
            match chunk {
                Chunk::Init(init) => {
                    self.tsn.insert(init.initiate_tag.0, init.initial_tsn.0);
                }
                Chunk::InitAck(init) => {
                    self.tsn.insert(init.initiate_tag.0, init.initial_tsn.0);
                    self.offered.insert(init.initiate_tag.0, sent.tag);
                }
                Chunk::CookieEcho(_) => {
                    if let Some(&other) = self.offered.get(&sent.tag) {
                        self.pairs.insert(sent.tag, other);
                        self.pairs.insert(other, sent.tag);
                    }
                }
                _ => {}
            }
        }
        let of = |tag: Option<&u32>| tag.and_then(|t| self.tsn.get(t)).copied().unwrap_or(1);
        sent.receiver_tsn = of(Some(&sent.tag));
        sent.sender_tsn = of(self.pairs.get(&sent.tag));
        sent.chunks = packet
            .chunks()
            .map(|chunk| match chunk {
                Ok(chunk) => say(&chunk, &sent),
                Err(error) => {
                    Said { name: "malformed".into(), text: format!("malformed ({error})") }
                }
            })
            .collect();
        sent
    }
}

fn say(chunk: &Chunk<'_>, sent: &Sent) -> Said {
    let name = match chunk {
        Chunk::Unknown(unknown) => format!("chunk type {}", unknown.ty),
        _ => polypath_proto::wire::chunk_type::name(chunk.ty()).unwrap_or("?").to_owned(),
    };
    let text = match chunk {
        Chunk::Data(d) => format!("{name} {}", relative(d.tsn.0, sent.sender_tsn)),
        Chunk::IData(d) => format!("{name} {}", relative(d.tsn.0, sent.sender_tsn)),
        Chunk::IForwardTsn(f) => {
            let mut text =
                format!("{name} {}", relative(f.new_cumulative_tsn().0, sent.sender_tsn));
            for s in f.messages() {
                let unordered = if s.unordered { "u" } else { "" };
                text += &format!(" [{}{unordered}:{}]", s.stream, s.mid);
            }
            text
        }
        Chunk::ForwardTsn(f) => {
            let mut text =
                format!("{name} {}", relative(f.new_cumulative_tsn().0, sent.sender_tsn));
            for s in f.streams() {
                text += &format!(" [{}:{}]", s.stream, s.ssn);
            }
            text
        }
        Chunk::Shutdown(s) => {
            format!("{name} {}", relative(s.cumulative_tsn_ack.0, sent.receiver_tsn))
        }
        Chunk::Sack(s) => {
            let mut text =
                format!("{name} {}", relative(s.cumulative_tsn_ack.0, sent.receiver_tsn));
            for g in s.gaps() {
                text += &format!(" [{}-{}]", g.start, g.end);
            }
            text
        }
        Chunk::NrSack(s) => {
            let mut text =
                format!("{name} {}", relative(s.cumulative_tsn_ack.0, sent.receiver_tsn));
            for (open, g) in s.gaps().map(|g| ('[', g)).chain(s.nr_gaps().map(|g| ('{', g))) {
                text += &format!(" {open}{}-{}", g.start, g.end);
                text.push(if open == '[' { ']' } else { '}' });
            }
            text
        }
        Chunk::Abort(a) => {
            format!("{name}{}{}", if a.t_bit { " T" } else { "" }, causes(a.causes))
        }
        Chunk::Error(e) => format!("{name}{}", causes(e.causes)),
        Chunk::ShutdownComplete(s) => format!("{name}{}", if s.t_bit { " T" } else { "" }),
        _ => name.clone(),
    };
    Said { name, text }
}

fn causes(causes: Causes<'_>) -> String {
    let names: Vec<String> = causes
        .iter()
        .map(|c: Result<Cause<'_>, _>| match c {
            Ok(c) => cause_code::name(c.code()).map_or_else(|| c.code().to_string(), str::to_owned),
            Err(error) => error.to_string(),
        })
        .collect();
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}
