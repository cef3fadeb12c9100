//! Datagrams queued because the operating system's buffer was full: kept in order, never dropped.
//!
//! Each socket has its own backlog, so that a path whose interface is stuck does not delay the
//! others.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, Bytes};
use polypath_proto::{Ecn, Fragmentation};

use super::Outgoing;

/// Size in bytes from which the protocol stops producing packets. One transmit may exceed it.
const FULL: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Backlog {
    queue: VecDeque<Kept>,
    bytes: usize,
}

/// Queued datagrams, with their own copy of the bytes.
#[derive(Debug)]
pub(super) struct Kept {
    source: Option<IpAddr>,
    destination: SocketAddr,
    ecn: Ecn,
    fragmentation: Fragmentation,
    contents: Bytes,
    segment: usize,
}

impl Kept {
    /// Removes the first `bytes` bytes, which have been handled.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.contents.advance(bytes);
    }

    pub(super) fn outgoing(&self) -> Outgoing<'_> {
        Outgoing {
            source: self.source,
            destination: self.destination,
            ecn: self.ecn,
            fragmentation: self.fragmentation,
            contents: &self.contents,
            segment: self.segment,
        }
    }
}

impl Backlog {
    pub(super) fn push(&mut self, outgoing: &Outgoing<'_>) {
        let &Outgoing { source, destination, ecn, fragmentation, contents, segment } = outgoing;
        self.bytes += contents.len();
        self.queue.push_back(Kept {
            source,
            destination,
            ecn,
            fragmentation,
            contents: Bytes::copy_from_slice(contents),
            segment,
        });
    }

    pub(super) fn pop(&mut self) -> Option<Kept> {
        let kept = self.queue.pop_front()?;
        self.bytes -= kept.contents.len();
        Some(kept)
    }

    /// Puts the unsent rest of a [`pop`](Self::pop) back.
    pub(super) fn put_back(&mut self, kept: Kept) {
        self.bytes += kept.contents.len();
        self.queue.push_front(kept);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= FULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(contents: &[u8]) -> Outgoing<'_> {
        Outgoing {
            source: None,
            destination: "127.0.0.1:9".parse().unwrap(),
            ecn: Ecn::NotEct,
            fragmentation: Fragmentation::System,
            contents,
            segment: 1000,
        }
    }

    #[test]
    fn keeps_the_order_and_counts_bytes() {
        let mut backlog = Backlog::default();
        backlog.push(&outgoing(b"first"));
        backlog.push(&outgoing(b"second"));
        let first = backlog.pop().unwrap();
        assert_eq!(first.outgoing().contents, b"first");
        backlog.put_back(first);
        assert_eq!(&*backlog.pop().unwrap().contents, b"first");
        assert_eq!(&*backlog.pop().unwrap().contents, b"second");
        assert!(backlog.is_empty());
        assert_eq!(backlog.bytes, 0);
    }

    #[test]
    fn is_full_from_a_mebibyte_on() {
        let mut backlog = Backlog::default();
        let transmit = vec![0; 60_000];
        while !backlog.is_full() {
            backlog.push(&outgoing(&transmit));
        }
        assert!(backlog.bytes >= FULL && backlog.bytes < FULL + transmit.len());
    }
}
