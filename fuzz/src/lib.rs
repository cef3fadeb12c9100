//! Common parts of the fuzz targets for state machines: a peer that sends what the input encodes.
//! The protocol tests run it too, without a fuzzer
//! (`crates/polypath-proto/tests/protocol/conversations.rs`).

pub mod addresses;
mod chunks;
pub mod conversation;
pub mod offers;
pub mod packets;
pub mod peer;

/// The rest of the input; `byte` and `word` return zeros after its end.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// The next two bytes, the lower one first.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next `n` bytes, fewer at the end.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
