//! Checksums of the messages sent and received: equal at both ends if and only if every message
//! arrived whole, once, on its stream, and in order if it was ordered. The peers on other stacks
//! have the same (`tests/interop/tally.h`).

use std::fmt;

/// The payload protocol identifier of a message: a number unknown to dissectors, and a bit for
/// unordered messages, because not every stack reports that to its receiver.
pub(crate) const fn ppid(number: u32, unordered: bool) -> u32 {
    0x7000_0000 | (unordered as u32) << 27 | number
}

/// Flag of a message that may be abandoned: it is left out of the checksums.
pub(crate) const LIMITED: u32 = 0x0400_0000;
const NUMBER: u32 = LIMITED - 1;

/// Number of streams that the checksums distinguish.
const STREAMS: usize = 2048;

pub(crate) struct Tally {
    messages: u64,
    bytes: u64,
    unordered: u64,
    streams: Vec<u64>,
    /// Messages received that might have been abandoned.
    limited: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { messages: 0, bytes: 0, unordered: 0, streams: vec![0; STREAMS], limited: 0 }
    }

    /// The number of the next message.
    pub(crate) const fn next(&self) -> u32 {
        self.messages as u32
    }

    /// Number of messages received that might have been abandoned.
    pub(crate) const fn limited(&self) -> u64 {
        self.limited
    }

    pub(crate) fn add(&mut self, message: &[u8], stream: u16, ppid: u32, unordered: bool) {
        if ppid & LIMITED != 0 {
            assert_eq!(message, content(message.len(), ppid & NUMBER), "as it was sent");
            self.limited += 1;
            return;
        }
        let size = message.len() as u64;
        let hash = hash(message, u64::from(ppid) << 32 ^ size ^ u64::from(stream) << 16);
        self.messages += 1;
        self.bytes += size;
        if unordered {
            self.unordered = self.unordered.wrapping_add(hash);
        } else {
            let sum = &mut self.streams[usize::from(stream) % STREAMS];
            *sum = sum.wrapping_mul(31).wrapping_add(hash);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |sum: u64, stream: &u64| sum.wrapping_mul(31).wrapping_add(*stream);
        let ordered = self.streams.iter().fold(0, sum);
        let Self { messages, bytes, unordered, .. } = self;
        write!(
            f,
            "messages={messages} bytes={bytes} ordered={ordered:016x} unordered={unordered:016x}"
        )
    }
}

/// The contents of the message with this number.
pub(crate) fn content(size: usize, number: u32) -> Vec<u8> {
    let mut message = Vec::with_capacity(size.next_multiple_of(8));
    let mut x = u64::from(number) + 1;
    while message.len() < size {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        message.extend((x ^ x >> 32).to_le_bytes());
    }
    message.truncate(size);
    message
}

fn hash(message: &[u8], seed: u64) -> u64 {
    message.chunks(8).fold(seed, |h, piece| {
        let mut word = [0; 8];
        word[..piece.len()].copy_from_slice(piece);
        let h = (h ^ u64::from_le_bytes(word)).wrapping_mul(1_099_511_628_211);
        h ^ h >> 29
    })
}
