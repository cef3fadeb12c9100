//! A conversation with an endpoint whose peer is the input: chunks of all types, in any order, cut
//! off, repeated, out of place, unauthenticated, while an application acts at random. Nothing may
//! panic, the endpoint's state stays bounded and consistent, and every answer is a packet.
//!
//! The first two bytes select the endpoint's offers, the next two the peer's. Each further step is
//! a byte for its kind, followed by its arguments.

use std::collections::BTreeSet;
use std::time::Duration;

use polypath_proto::wire::chunk_type;
use polypath_proto::{Message, PathId, Reliability, StreamId, StreamReset};

use super::Input;
use super::chunks::RawChunk;
use super::offers::Offers;
use super::packets::{How, OURS, Sign, THEIRS, ip};
use super::peer::{Peer, Told};

/// Types of the peer's chunks.
const KINDS: [u8; 26] = [
    chunk_type::DATA,
    chunk_type::I_DATA,
    chunk_type::SACK,
    chunk_type::FORWARD_TSN,
    chunk_type::I_FORWARD_TSN,
    chunk_type::RE_CONFIG,
    chunk_type::PAD,
    chunk_type::ECNE,
    chunk_type::CWR,
    chunk_type::HEARTBEAT,
    chunk_type::HEARTBEAT_ACK,
    chunk_type::TIMESTAMP,
    chunk_type::SHUTDOWN,
    chunk_type::ERROR,
    chunk_type::COOKIE_ACK,
    chunk_type::INIT,
    chunk_type::NR_SACK,
    chunk_type::AUTH,
    chunk_type::ASCONF,
    chunk_type::ASCONF_ACK,
    chunk_type::COOKIE_ECHO,
    chunk_type::INIT_ACK,
    chunk_type::SHUTDOWN_ACK,
    chunk_type::SHUTDOWN_COMPLETE,
    chunk_type::ABORT,
    // An unknown type.
    201,
];

/// The outcome of a conversation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Types of the chunks that the peer sent while the association was established.
    pub said: BTreeSet<u8>,
    /// Messages, or pieces of them, that the application received.
    pub received: usize,
    /// Bytes that the peer has not acknowledged at the end of the input.
    pub kept: usize,
    pub told: Told,
}

pub struct Conversation {
    peer: Peer,
    kinds: &'static [u8],
    outcome: Outcome,
}

/// Runs the conversation that the input encodes.
pub fn converse(bytes: &[u8]) -> Outcome {
    let mut input = Input(bytes);
    let (ours, theirs) = (Offers(input.word()), Offers(input.word()));
    Conversation::tell(ours, theirs, &KINDS, input)
}

impl Conversation {
    /// Runs all steps of the input. The peer's chunks have the types `kinds`.
    pub fn tell(
        ours: Offers,
        theirs: Offers,
        kinds: &'static [u8],
        mut input: Input<'_>,
    ) -> Outcome {
        let Some(peer) = Peer::meet(ours, theirs) else { return Outcome::default() };
        let mut talk = Self { peer, kinds, outcome: Outcome::default() };
        while !input.0.is_empty() {
            talk.step(&mut input);
            talk.peer.settle();
        }
        talk.outcome.kept = talk.peer.association().map_or(0, |(_, a)| a.buffered());
        talk.peer.wait(Duration::from_secs(30));
        talk.outcome.told = talk.peer.told;
        talk.outcome
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let kind = input.byte();
        match kind % 16 {
            0..=7 => {
                let how = How::read(input);
                let chunks: Vec<RawChunk> =
                    (0..=kind / 16 % 4).map(|_| self.peer.chunk(self.kinds, input)).collect();
                if self.peer.is_established() {
                    self.outcome.said.extend(chunks.iter().map(|chunk| chunk.0));
                }
                self.peer.say(how, |w| {
                    for (ty, flags, value) in chunks {
                        let _ = w.typed_chunk(ty, flags, &value);
                    }
                });
            }
            // Repeat an earlier packet, unchanged or cut off.
            8 | 9 => {
                let (which, at) = (input.byte(), usize::from(input.byte()));
                let Some(last) = self.peer.said.len().checked_sub(1) else { return };
                let (again, how) = self.peer.said[last - usize::from(which).min(last)].clone();
                let len = match kind {
                    0..=127 if kind % 16 == 8 => again.len(),
                    0..=127 => 12 + at * 4,
                    _ => at,
                };
                self.peer.deliver(&again[..len.min(again.len())], how, false);
            }
            10 => self.peer.wait(Duration::from_millis(u64::from(input.byte()) * 20)),
            11 => {
                // Acknowledge all that the endpoint has sent.
                let mut value = self.peer.highest.to_be_bytes().to_vec();
                value.extend([0, 0, 0x27, 0x10, 0, 0, 0, 0]);
                self.peer.say(How::GOOD, |w| {
                    let _ = w.typed_chunk(chunk_type::SACK, 0, &value);
                });
            }
            12 => {
                let (info, way) = self.peer.heartbeat.clone();
                self.peer.say(How { way, ..How::GOOD }, |w| {
                    let _ = w.typed_chunk(chunk_type::HEARTBEAT_ACK, 0, &info);
                });
            }
            13 => self.send(input),
            14 => self.reconfigure(input),
            _ => self.act(input),
        }
    }

    fn send(&mut self, input: &mut Input<'_>) {
        let (a, b) = (input.byte(), input.byte());
        let Some((now, association)) = self.peer.association() else { return };
        let reliability = match b % 4 {
            0 => Reliability::Reliable,
            1 => Reliability::Retransmissions(0),
            2 => Reliability::Lifetime(Duration::from_millis(u64::from(b))),
            _ => Reliability::Priority(a.into()),
        };
        let stream = StreamId((a % 8).into());
        let plain = Message::new(stream, vec![a; 1 + usize::from(b) * 30]);
        let _ = association.send(now, Message { reliability, unordered: a >= 128, ..plain });
    }

    fn reconfigure(&mut self, input: &mut Input<'_>) {
        let (a, b) = (input.byte(), input.byte());
        let Some((now, association)) = self.peer.association() else { return };
        let reset = [StreamReset::Outgoing, StreamReset::Incoming, StreamReset::Both];
        let _ = match b % 6 {
            0 => association.reset_association(now),
            1 => association.add_streams(now, a.into(), 1),
            n => {
                let stream = StreamId((a % 8).into());
                association.reset_streams(now, reset[usize::from(n) % 3], &[stream])
            }
        };
    }

    /// Another action of the application or of the endpoint's host, or a new handshake of the peer.
    fn act(&mut self, input: &mut Input<'_>) {
        let (a, b) = (input.byte(), input.byte());
        if a == 254 {
            let theirs = Offers(input.word());
            let sign = [Sign::Right, Sign::Not, Sign::Wrong][usize::from(b % 3)];
            let way = (THEIRS[0], OURS[usize::from(b / 16 % 2)]);
            return self.peer.handshake(theirs, b / 32, How { sign, way, ..How::GOOD });
        }
        let now = self.peer.now;
        match a {
            246..=249 => self.peer.endpoint.add_local_address(now, ip(1 + b % 4)),
            250..=253 => self.peer.endpoint.remove_local_address(now, ip(1 + b % 4)),
            _ => {}
        }
        let Some((now, association)) = self.peer.association() else { return };
        match a {
            255 => association.shutdown(now),
            244 => drop(association.request_heartbeat(now, PathId(b % 5))),
            245 => drop(association.set_primary(now, PathId(b % 5))),
            0..=243 => {
                while association.recv(now).is_some() {
                    self.outcome.received += 1;
                }
            }
            _ => {}
        }
    }
}
