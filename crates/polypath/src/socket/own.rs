//! Sockets of a network other than the operating system's.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use super::Outgoing;
use super::buffers::{BUFFER, COUNT, Filled, ReceiveBuffers};
use crate::network::{DatagramSocket, DatagramToSend};

pub(super) struct Own(Box<dyn DatagramSocket>);

impl Own {
    pub(super) const fn new(socket: Box<dyn DatagramSocket>) -> Self {
        Self(socket)
    }

    /// Receives as many datagrams as there are, up to the number of buffers.
    pub(super) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        local: SocketAddr,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<()>> {
        for index in 0..COUNT {
            let start = index * BUFFER;
            let buffer = &mut buffers.storage()[start..start + BUFFER];
            let arrival = match self.0.poll_receive(cx, buffer) {
                Poll::Ready(Ok(arrival)) => arrival,
                Poll::Pending if index > 0 => break,
                other => return other.map_ok(|_| ()),
            };
            let local = SocketAddr::new(arrival.destination, local.port());
            let size = arrival.size.min(BUFFER);
            buffers.push(Filled::new((local, arrival.source), arrival.ecn, (0, size), size));
        }
        Poll::Ready(Ok(()))
    }

    /// Sends one datagram.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Poll<io::Result<()>> {
        let &Outgoing { source, destination, ecn, fragmentation, contents, .. } = outgoing;
        let datagram = DatagramToSend { source, destination, ecn, fragmentation, contents };
        self.0.poll_send(cx, &datagram)
    }
}
