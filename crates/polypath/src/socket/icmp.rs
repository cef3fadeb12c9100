//! The error queue of a socket: ICMP errors about datagrams that this side sent (RFC 9260 10).
//!
//! `quinn-udp` reads the queue, too, but reports the address of the router that sent the error.
//! This module reports the destination of the datagram, which identifies the path.

use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use polypath_proto::Unreachable;

use super::NetworkError;

/// Maximum number of errors read at a time, so that a flood of them does not block the driver.
const AT_MOST: usize = 64;

/// Bytes to read of a quoted datagram: enough for an INIT with its Initiate Tag, or the random
/// number of a DTLS ClientHello.
const QUOTED: usize = 64;

/// Empties the error queue.
pub(super) fn read(socket: &impl AsRawFd, mut tell: impl FnMut(NetworkError)) {
    for _ in 0..AT_MOST {
        // The beginning of the datagram that caused the error.
        let mut packet = [0; QUOTED];
        let mut slices = [IoSliceMut::new(&mut packet)];
        let mut control = nix::cmsg_space!([u8; 256]);
        let Ok(message) = recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut slices,
            Some(&mut control),
            MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT,
        ) else {
            return;
        };
        let (length, address) = (message.bytes, message.address);
        let Some(destination) = address.as_ref().and_then(socket_address) else { continue };
        let Ok(controls) = message.cmsgs() else { continue };
        let found: Vec<(u8, Option<Unreachable>)> = controls
            .filter_map(|control| match control {
                ControlMessageOwned::Ipv4RecvErr(e, _) | ControlMessageOwned::Ipv6RecvErr(e, _) => {
                    let what = meaning(e.ee_origin, e.ee_type, e.ee_code, e.ee_errno, e.ee_info);
                    Some((e.ee_origin, what))
                }
                _ => None,
            })
            .collect();
        let shown = packet.get(..length).unwrap_or(&packet);
        for (origin, what) in found {
            let quoted = (origin != libc::SO_EE_ORIGIN_LOCAL).then(|| shown.to_vec());
            if let Some(what) = what {
                tell(NetworkError { destination, what, quoted });
            }
        }
    }
}

pub(super) fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => Some(SocketAddr::V4((*v4).into())),
        (_, Some(v6)) => Some(SocketAddr::V6((*v6).into())),
        _ => None,
    }
}

/// Maps ICMP types and codes (RFC 792, RFC 1812 5.2.7.1, RFC 4443 3), and the kernel's own report
/// that a datagram is larger than the interface's MTU.
fn meaning(origin: u8, kind: u8, code: u8, errno: u32, info: u32) -> Option<Unreachable> {
    let too_big = || Unreachable::TooBig { mtu: u16::try_from(info).unwrap_or(u16::MAX) };
    Some(match (origin, kind, code) {
        (libc::SO_EE_ORIGIN_ICMP, 3, 0 | 6 | 9 | 11) => Unreachable::Network,
        (libc::SO_EE_ORIGIN_ICMP, 3, 2) => Unreachable::Protocol,
        (libc::SO_EE_ORIGIN_ICMP, 3, 3) => Unreachable::Port,
        (libc::SO_EE_ORIGIN_ICMP, 3, 4) => too_big(),
        (libc::SO_EE_ORIGIN_ICMP, 3, _) => Unreachable::Host,
        (libc::SO_EE_ORIGIN_ICMP6, 1, 0) => Unreachable::Network,
        (libc::SO_EE_ORIGIN_ICMP6, 1, 4) => Unreachable::Port,
        (libc::SO_EE_ORIGIN_ICMP6, 1, _) => Unreachable::Host,
        (libc::SO_EE_ORIGIN_ICMP6, 2, _) => too_big(),
        // Parameter problem: unrecognized next header.
        (libc::SO_EE_ORIGIN_ICMP6, 4, 1) => Unreachable::Protocol,
        (libc::SO_EE_ORIGIN_LOCAL, ..) if errno == libc::EMSGSIZE as u32 => too_big(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use nix::sys::socket::{setsockopt, sockopt};

    use super::*;

    #[test]
    fn port_unreachable_names_the_destination() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true).unwrap();
        socket.send_to(b"anybody?", closed).unwrap();
        let mut errors = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(5);
        while errors.is_empty() && Instant::now() < deadline {
            read(&socket, |error| errors.push(error));
        }
        let quoted = Some(b"anybody?".to_vec());
        let what = Unreachable::Port;
        assert_eq!(errors, [NetworkError { destination: closed, what, quoted }]);
    }

    #[test]
    fn codes_have_their_meaning() {
        let icmp = |code| meaning(libc::SO_EE_ORIGIN_ICMP, 3, code, 0, 1400);
        assert_eq!(icmp(1), Some(Unreachable::Host));
        assert_eq!(icmp(2), Some(Unreachable::Protocol));
        assert_eq!(icmp(4), Some(Unreachable::TooBig { mtu: 1400 }));
        let local = meaning(libc::SO_EE_ORIGIN_LOCAL, 0, 0, libc::EMSGSIZE as u32, 1280);
        assert_eq!(local, Some(Unreachable::TooBig { mtu: 1280 }));
        assert_eq!(meaning(libc::SO_EE_ORIGIN_TXSTATUS, 0, 0, 0, 0), None);
    }
}
