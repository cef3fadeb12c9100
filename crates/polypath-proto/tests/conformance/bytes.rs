//! Packets as bytes, parsed without the library: reference for the tests of formats.

use polypath_proto::wire::checksum;

/// A chunk, parameter or error cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    /// Chunk type, parameter type or cause code.
    pub(crate) ty: u16,
    /// Chunk flags; 0 for parameters and causes.
    pub(crate) flags: u8,
    /// The length field.
    pub(crate) length: usize,
    /// The value, without padding.
    pub(crate) value: Vec<u8>,
    /// The bytes up to the next multiple of four.
    pub(crate) padding: Vec<u8>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The bytes at `at` as a number in network byte order.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn take(bytes: &mut &[u8], ty: u16, flags: u8) -> Raw {
    let length = usize::from(u16_at(bytes, 2));
    assert!((4..=bytes.len()).contains(&length), "length {length} of {} bytes", bytes.len());
    // The padding of the last parameter belongs to its chunk.
    let end = length.next_multiple_of(4).min(bytes.len());
    let (element, rest) = bytes.split_at(end);
    *bytes = rest;
    let (value, padding) = element[4..].split_at(length - 4);
    Raw { ty, flags, length, value: value.to_vec(), padding: padding.to_vec() }
}

/// The chunks of a packet with their padding; fails if the lengths do not add up.
pub(crate) fn chunks(packet: &[u8]) -> Vec<Raw> {
    let mut rest = &packet[12..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (ty, flags) = (rest[0], rest[1]);
        found.push(take(&mut rest, ty.into(), flags));
    }
    found
}

/// The parameters or causes in these bytes.
pub(crate) fn elements(mut list: &[u8]) -> Vec<Raw> {
    let mut found = Vec::new();
    while !list.is_empty() {
        let ty = u16_at(list, 0);
        found.push(take(&mut list, ty, 0));
    }
    found
}

/// The parameters of an INIT or INIT ACK chunk.
pub(crate) fn parameters(init: &Raw) -> Vec<Raw> {
    elements(&init.value[16..])
}

/// The first chunk of this type in a packet.
pub(crate) fn chunk(packet: &[u8], ty: u16) -> Raw {
    let found = chunks(packet).into_iter().find(|chunk| chunk.ty == ty);
    found.unwrap_or_else(|| panic!("no chunk of type {ty}"))
}

/// Corrects the checksum of a packet that was changed by hand.
pub(crate) fn reseal(packet: &mut [u8]) {
    let crc = checksum(packet);
    packet[8..12].copy_from_slice(&crc.to_le_bytes());
}
