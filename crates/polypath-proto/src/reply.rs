//! Complete packets without a path: replies to peers without an association, and packets with a tag
//! that is not the association's (RFC 9260 5.1, 5.2, 8.4).

use std::time::Duration;

use crate::shared::Shared;
use crate::transmit::{Ecn, FourTuple, Fragmentation, Transmit};
use crate::wire::{CauseWriter, Causes, CommonHeader, DoesNotFit, PacketWriter};

/// A complete packet waiting to be sent, whose tag or address is not that of a path.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) four_tuple: FourTuple,
    pub(crate) packet: Vec<u8>,
}

/// Copies a reply to `buf`.
pub(crate) fn write_reply(reply: &Reply, buf: &mut [u8]) -> Transmit {
    let size = reply.packet.len().min(buf.len());
    buf[..size].copy_from_slice(&reply.packet[..size]);
    Transmit {
        path: None,
        source: reply.four_tuple.local.ip(),
        destination: reply.four_tuple.remote,
        ecn: Ecn::NotEct,
        fragmentation: Fragmentation::System,
        size,
        segment_size: None,
    }
}

/// A packet with an ABORT for a peer without an association (RFC 9260 5.1, 8.4).
pub(crate) fn abort_packet(
    header: CommonHeader,
    t_bit: bool,
    shared: &Shared,
    causes: impl FnOnce(&mut CauseWriter<'_>) -> Result<(), DoesNotFit>,
) -> Vec<u8> {
    let mut buf = vec![0; 1400];
    let mut w = PacketWriter::new(&mut buf, header);
    if w.abort(t_bit, causes).is_err() {
        // A cause that does not fit is omitted.
        let _ = w.abort(t_bit, |_| Ok(()));
    }
    let len = w.finish(shared.config.checksum);
    buf.truncate(len);
    buf
}

/// A packet with an ERROR that reports the staleness of a cookie (RFC 9260 5.1.5 (4)).
pub(crate) fn stale_cookie_packet(header: CommonHeader, by: Duration, shared: &Shared) -> Vec<u8> {
    let mut buf = vec![0; 64];
    let mut w = PacketWriter::new(&mut buf, header);
    let staleness = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
    let written = w.error(|c| c.stale_cookie(staleness));
    debug_assert!(written.is_ok(), "an ERROR with a stale cookie cause always fits 64 bytes");
    let len = w.finish(shared.config.checksum);
    buf.truncate(len);
    buf
}

/// A SHUTDOWN COMPLETE with the tag of the packet that it answers (RFC 9260 8.4 (5)).
pub(crate) fn shutdown_complete_packet(header: CommonHeader, shared: &Shared) -> Vec<u8> {
    let mut buf = vec![0; 16];
    let mut w = PacketWriter::new(&mut buf, header);
    let written = w.shutdown_complete(true);
    debug_assert!(written.is_ok(), "a SHUTDOWN COMPLETE always fits 16 bytes");
    let len = w.finish(shared.config.checksum);
    buf.truncate(len);
    buf
}

/// The error causes of an ABORT or ERROR as text, of limited length.
pub(crate) fn words(causes: Causes<'_>) -> String {
    const MOST: usize = 512;
    let mut words = String::new();
    for cause in causes.iter().take(8) {
        if !words.is_empty() {
            words.push_str("; ");
        }
        match cause {
            Ok(cause) => words.push_str(&cause.to_string()),
            Err(error) => words.push_str(&error.to_string()),
        }
        if words.len() > MOST {
            let end = (0..=MOST).rev().find(|at| words.is_char_boundary(*at));
            words.truncate(end.unwrap_or_default());
            break;
        }
    }
    words
}
