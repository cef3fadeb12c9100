//! A small writer of pcapng files (draft-ietf-opsawg-pcapng): one section, one interface for each
//! link direction, nanosecond time stamps, and no contents that depend on a clock or on the
//! machine.

use std::io::{self, Write};
use std::net::SocketAddr;

use polypath_proto::{Ecn, Time};

use crate::wire;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Raw IP: the packet begins with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;

/// Writes a capture to any [`Write`]; pass a buffered one.
#[derive(Debug)]
pub struct PcapNg<W> {
    out: W,
    block: Vec<u8>,
    interfaces: u32,
}

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

impl<W: Write> PcapNg<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// The writer fails.
    pub fn new(out: W) -> io::Result<Self> {
        let mut this = Self { out, block: Vec::with_capacity(2048), interfaces: 0 };
        this.begin(SECTION_HEADER);
        this.u32(BYTE_ORDER_MAGIC);
        this.block.extend_from_slice(&1u16.to_le_bytes());
        this.block.extend_from_slice(&0u16.to_le_bytes());
        this.block.extend_from_slice(&u64::MAX.to_le_bytes()); // section length not given
        this.option(SHB_USERAPPL, b"polypath");
        this.end_of_options();
        this.finish()?;
        Ok(this)
    }

    /// Adds an interface, for one direction of a link.
    ///
    /// # Errors
    /// The writer fails.
    pub fn interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        self.begin(INTERFACE_DESCRIPTION);
        self.block.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
        self.block.extend_from_slice(&0u16.to_le_bytes());
        self.u32(0); // no limit of the captured length
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_TSRESOL, &[9]);
        self.end_of_options();
        self.finish()?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Writes a packet: IP header, UDP header if the ports are not 0, and SCTP packet; with
    /// `comment` if that is not empty.
    ///
    /// # Errors
    /// The writer fails.
    #[allow(clippy::too_many_arguments)] // one record of the file, field by field
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        at: Time,
        source: SocketAddr,
        destination: SocketAddr,
        ecn: Ecn,
        sctp: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        self.begin(ENHANCED_PACKET);
        self.u32(interface.0);
        self.u32((at.as_nanos() >> 32) as u32);
        self.u32(at.as_nanos() as u32);
        let lengths = self.block.len();
        self.block.extend_from_slice(&[0; 8]);
        let start = self.block.len();
        wire::write_headers(&mut self.block, source, destination, ecn, sctp);
        self.block.extend_from_slice(sctp);
        let length = (self.block.len() - start) as u32;
        self.block[lengths..lengths + 4].copy_from_slice(&length.to_le_bytes());
        self.block[lengths + 4..lengths + 8].copy_from_slice(&length.to_le_bytes());
        self.pad();
        if !comment.is_empty() {
            self.option(OPT_COMMENT, comment.as_bytes());
            self.end_of_options();
        }
        self.finish()
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// The writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0); // length, filled in at the end
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.option(OPT_END, &[]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn finish(&mut self) -> io::Result<()> {
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.u32(length);
        self.out.write_all(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Block types with their bodies.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |b: &[u8], at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = word(file, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(file, length - 4) as usize, length);
            blocks.push((word(file, 0), &file[8..length - 4]));
            file = &file[length..];
        }
        blocks
    }

    #[test]
    fn reads_back() {
        let mut file = Vec::new();
        let mut capture = PcapNg::new(&mut file).unwrap();
        let a = capture.interface("path0/forward").unwrap();
        let b = capture.interface("path0/back").unwrap();
        let (s, d) = ("10.0.0.1:0".parse().unwrap(), "10.0.0.2:0".parse().unwrap());
        let at = Time::from_nanos(0x1_2345_6789);
        capture.packet(a, at, s, d, Ecn::NotEct, &[1, 2, 3, 4, 5], "").unwrap();
        capture.packet(b, at, d, s, Ecn::NotEct, &[9; 12], "dropped: lost").unwrap();
        let blocks = blocks(&file);
        let kinds: Vec<u32> = blocks.iter().map(|b| b.0).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 1, ENHANCED_PACKET, ENHANCED_PACKET]);
        assert_eq!(&blocks[1].1[..2], &101u16.to_le_bytes());
        let packet = blocks[3].1;
        assert_eq!(&packet[4..12], &[1, 0, 0, 0, 0x89, 0x67, 0x45, 0x23]);
        assert_eq!(packet[12], 25);
        assert_eq!(&packet[40..45], &[1, 2, 3, 4, 5]);
        let commented = blocks[4].1;
        assert!(commented.windows(13).any(|w| w == b"dropped: lost"));
    }
}
