//! SCTP in IP, protocol 132, on raw sockets (Linux).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use polypath_proto::Ecn;
use socket2::Protocol;

use super::Outgoing;
use super::buffers::{BUFFER, COUNT, Filled, ReceiveBuffers};
use super::fragments::Fragments;
use super::icmp::socket_address;
use super::waiting::Io;

/// IP protocol number of SCTP.
pub(super) const PROTOCOL: Protocol = Protocol::SCTP;

pub(super) struct Raw {
    io: Arc<Io>,
    /// SCTP port of the endpoint. A raw socket receives the packets of all ports; those for other
    /// ports must not be answered.
    port: u16,
    fragments: Fragments,
}

impl Raw {
    pub(super) fn new(io: Io, address: IpAddr, port: u16) -> io::Result<Self> {
        if address.is_ipv6() {
            setsockopt(io.socket(), sockopt::Ipv6RecvErr, &true)?;
            setsockopt(io.socket(), sockopt::Ipv6RecvPacketInfo, &true)?;
            setsockopt(io.socket(), sockopt::Ipv6RecvTClass, &true)?;
        } else {
            setsockopt(io.socket(), sockopt::Ipv4RecvErr, &true)?;
        }
        Ok(Self { io: Arc::new(io), port, fragments: Fragments::new(false) })
    }

    pub(super) const fn io(&self) -> &Arc<Io> {
        &self.io
    }

    /// Receives until nothing is left or the buffers are full; an error only if nothing was
    /// received.
    pub(super) fn receive(
        &self,
        local: SocketAddr,
        buffers: &mut ReceiveBuffers,
    ) -> io::Result<()> {
        for index in 0..COUNT {
            let buffer = &mut buffers.storage()[index * BUFFER..][..BUFFER];
            match receive_one(self.io.socket(), local, self.port, buffer) {
                Ok(filled) => buffers.push(filled),
                Err(Errno::EINTR) => buffers.push(None),
                Err(error) if index == 0 => return Err(error.into()),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Sends one datagram with one system call.
    pub(super) fn try_send(&mut self, outgoing: &Outgoing<'_>) -> io::Result<()> {
        self.fragments.set(self.io.socket(), outgoing.destination, outgoing.fragmentation)?;
        // On a raw IPv6 socket, the port of a destination denotes a protocol.
        let destination = SockaddrStorage::from(SocketAddr::new(outgoing.destination.ip(), 0));
        let ecn = outgoing.ecn as u8;
        let traffic_class = i32::from(ecn);
        let (v4, v6);
        let mut controls = Vec::new();
        match outgoing.source {
            Some(IpAddr::V4(source)) => {
                v4 = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from(source).to_be() },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                controls.push(ControlMessage::Ipv4PacketInfo(&v4));
            }
            Some(IpAddr::V6(source)) => {
                v6 = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr { s6_addr: source.octets() },
                    ipi6_ifindex: 0,
                };
                controls.push(ControlMessage::Ipv6PacketInfo(&v6));
            }
            None => {}
        }
        if outgoing.ecn != Ecn::NotEct {
            controls.push(match outgoing.destination {
                SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&ecn),
                SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&traffic_class),
            });
        }
        sendmsg(
            self.io.socket().as_raw_fd(),
            &[IoSlice::new(outgoing.contents)],
            &controls,
            MsgFlags::empty(),
            Some(&destination),
        )?;
        Ok(())
    }
}

fn receive_one(
    socket: &UdpSocket,
    local: SocketAddr,
    port: u16,
    buffer: &mut [u8],
) -> nix::Result<Option<Filled>> {
    let mut slices = [IoSliceMut::new(buffer)];
    let mut control = nix::cmsg_space!(libc::in6_pktinfo, i32);
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let length = message.bytes;
    let Some(remote) = message.address.as_ref().and_then(socket_address) else { return Ok(None) };
    let remote = SocketAddr::new(remote.ip(), 0);
    let mut local = local;
    let mut ecn = 0;
    if remote.is_ipv6() {
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    local.set_ip(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                ControlMessageOwned::Ipv6TClass(class) => ecn = class as u8,
                _ => {}
            }
        }
    }
    let mut start = 0;
    if remote.is_ipv4() {
        let Some(header) = Ipv4Header::read(&buffer[..length]) else { return Ok(None) };
        local.set_ip(header.destination.into());
        ecn = header.tos;
        start = header.length;
    }
    let packet = &buffer[start..length];
    // RFC 9260 3.1: the destination port is the second field.
    if packet.get(2..4) != Some(&port.to_be_bytes()) {
        return Ok(None);
    }
    let ecn = match ecn & 0b11 {
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        0b11 => Ecn::Ce,
        _ => Ecn::NotEct,
    };
    Ok(Filled::new((local, remote), ecn, (start, length), length - start))
}

/// Fields read from the IP header that raw IPv4 sockets receive (RFC 791 3.1).
#[derive(Debug, PartialEq, Eq)]
struct Ipv4Header {
    tos: u8,
    length: usize,
    destination: Ipv4Addr,
}

impl Ipv4Header {
    fn read(packet: &[u8]) -> Option<Self> {
        let length = usize::from(packet.first()? & 0x0f) * 4;
        if length < 20 || packet.len() < length {
            return None;
        }
        let destination: [u8; 4] = packet[16..20].try_into().ok()?;
        Some(Self { tos: packet[1], length, destination: destination.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_headers_have_options() {
        let mut packet = vec![0; 40];
        packet[0] = 0x46;
        packet[1] = 0b11;
        packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
        let header = Ipv4Header::read(&packet).unwrap();
        let destination = Ipv4Addr::new(10, 0, 0, 1);
        assert_eq!(header, Ipv4Header { tos: 3, length: 24, destination });
    }

    #[test]
    fn short_packets_are_nothing() {
        assert_eq!(Ipv4Header::read(&[]), None);
        assert_eq!(Ipv4Header::read(&[0x45; 19]), None);
        assert_eq!(Ipv4Header::read(&[0x41; 40]), None);
    }
}
