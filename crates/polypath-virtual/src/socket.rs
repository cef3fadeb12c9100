//! A socket of a host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use polypath::{DatagramArrival, DatagramSocket, DatagramToSend, RouteTable};
use polypath_sim::datagrams::Datagram;
use polypath_sim::network::HostId;

use crate::world::World;

#[derive(Debug)]
pub(crate) struct VirtualSocket {
    pub(crate) world: World,
    pub(crate) host: HostId,
    /// The addresses of the host.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) routes: Arc<dyn RouteTable>,
    /// The address and port that it is bound to.
    pub(crate) address: SocketAddr,
}

impl DatagramSocket for VirtualSocket {
    fn local_address(&self) -> SocketAddr {
        self.address
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<DatagramArrival>> {
        let mut state = self.world.lock();
        let inbox = state.sockets.get_mut(&(self.host, self.address));
        let inbox = inbox.ok_or(io::ErrorKind::NotConnected)?;
        let Some(datagram) = inbox.pop() else {
            inbox.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let size = datagram.contents.len().min(buffer.len());
        buffer[..size].copy_from_slice(&datagram.contents[..size]);
        Poll::Ready(Ok(DatagramArrival {
            size,
            source: datagram.source,
            destination: datagram.destination.ip(),
            ecn: datagram.ecn,
        }))
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        datagram: &DatagramToSend<'_>,
    ) -> Poll<io::Result<()>> {
        let remote = datagram.destination.ip();
        let mut source = self.address;
        if source.ip().is_unspecified() {
            let chosen = datagram
                .source
                .filter(|ip| self.addresses.contains(ip))
                .or_else(|| self.routes.local_for(remote, 0, &self.addresses));
            source.set_ip(chosen.ok_or(io::ErrorKind::NetworkUnreachable)?);
        }
        let datagram = Datagram {
            source,
            destination: datagram.destination,
            ecn: datagram.ecn,
            fragmentation: datagram.fragmentation,
            contents: datagram.contents.into(),
        };
        self.world.send(self.host, datagram);
        Poll::Ready(Ok(()))
    }
}

impl Drop for VirtualSocket {
    fn drop(&mut self) {
        self.world.lock().sockets.remove(&(self.host, self.address));
    }
}
