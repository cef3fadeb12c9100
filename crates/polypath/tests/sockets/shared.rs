//! Endpoints of one process that share a UDP port.

use std::net::SocketAddr;

use polypath::{
    Association, BindError, CloseReason, Config, ConnectError, ConnectOptions, Encapsulation,
    Encryption, Endpoint, EndpointOptions, Message, SharedSockets, StreamId,
};

use crate::setup::{client, ip, options, soon};

/// A UDP port that is free on all addresses at the moment.
fn free_port() -> u16 {
    std::net::UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

/// An endpoint that listens on these addresses, over this UDP port.
fn listener(
    shared: &SharedSockets,
    addresses: &[&str],
    port: u16,
    udp: u16,
) -> Result<Endpoint, BindError> {
    Endpoint::bind(EndpointOptions {
        port,
        listen: true,
        encapsulation: Encapsulation::Udp { port: udp },
        shared: Some(shared.clone()),
        ..options(addresses, &Config::default())
    })
}

fn to(address: &str, port: u16, udp: u16) -> ConnectOptions {
    ConnectOptions::new(port, [SocketAddr::new(ip(address), udp)])
}

/// An endpoint that connects.
fn a_client() -> Endpoint {
    client(&["127.0.0.1"], &Config::default())
}

/// Opens an association and checks that this endpoint accepts it.
async fn reaches(to: ConnectOptions, server: &Endpoint) -> [Association; 2] {
    let client = a_client();
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    assert_eq!(near.peer_port(), server.port());
    echoes(&near, &far).await;
    [near, far]
}

/// Checks that messages arrive in both directions.
async fn echoes(near: &Association, far: &Association) {
    for (from, other) in [(near, far), (far, near)] {
        let payload = vec![7; 20_000];
        soon(from.send(Message::new(StreamId(0), payload.clone()))).await.unwrap();
        let mut received = Vec::new();
        while received.len() < payload.len() {
            received.extend_from_slice(&soon(other.recv()).await.unwrap().unwrap().payload);
        }
        assert_eq!(received, payload);
    }
}

#[tokio::test]
async fn sctp_ports_multiplex_above_a_udp_port() {
    let (shared, udp) = (SharedSockets::default(), free_port());
    let servers: Vec<Endpoint> =
        (1..=3).map(|port| listener(&shared, &["127.0.0.1"], port, udp).unwrap()).collect();
    let mut open = Vec::new();
    for server in &servers {
        open.push(reaches(to("127.0.0.1", server.port(), udp), server).await);
    }
    // A port without a listener (RFC 9260 8.4).
    let error = soon(a_client().connect(to("127.0.0.1", 4, udp))).await.unwrap_err();
    assert!(matches!(error, ConnectError::Closed(CloseReason::PeerAbort { .. })), "{error:?}");
    for [near, far] in &open {
        echoes(near, far).await;
    }
}

#[tokio::test]
async fn the_others_go_on_when_one_closes() {
    let (shared, udp) = (SharedSockets::default(), free_port());
    let stays = listener(&shared, &["127.0.0.1"], 1, udp).unwrap();
    let [near, far] = reaches(to("127.0.0.1", 1, udp), &stays).await;
    // It polls the UDP socket last, and so is the one that is woken.
    let goes = listener(&shared, &["127.0.0.1"], 2, udp).unwrap();
    let [_, theirs] = reaches(to("127.0.0.1", 2, udp), &goes).await;
    theirs.abort("");
    soon(goes.close()).await;
    drop((theirs, goes));
    echoes(&near, &far).await;
    reaches(to("127.0.0.1", 1, udp), &stays).await;
    drop((near, far));
    soon(stays.close()).await;
    std::net::UdpSocket::bind(("127.0.0.1", udp)).unwrap();
}

#[tokio::test]
async fn a_single_address_and_the_wildcard_share_in_any_order() {
    for single_first in [true, false] {
        let (shared, udp) = (SharedSockets::default(), free_port());
        let single = || listener(&shared, &["127.0.0.2"], 1, udp).unwrap();
        let any = || listener(&shared, &["0.0.0.0"], 2, udp).unwrap();
        let (single, any) = if single_first {
            let single = single();
            (single, any())
        } else {
            let any = any();
            (single(), any)
        };
        // Another process still finds the port in use.
        for address in ["127.0.0.2", "0.0.0.0"] {
            let taken = listener(&SharedSockets::default(), &[address], 3, udp).unwrap_err();
            assert!(matches!(taken, BindError::InUse { .. }), "{address}: {taken}");
        }
        let mut open = vec![
            reaches(to("127.0.0.2", 1, udp), &single).await,
            reaches(to("127.0.0.2", 2, udp), &any).await,
            reaches(to("127.0.0.1", 2, udp), &any).await,
        ];
        let error = soon(a_client().connect(to("127.0.0.2", 3, udp))).await.unwrap_err();
        assert!(matches!(error, ConnectError::Closed(CloseReason::PeerAbort { .. })), "{error:?}");
        // The single address's port on another address.
        let error = soon(a_client().connect(to("127.0.0.1", 1, udp))).await.unwrap_err();
        assert!(matches!(error, ConnectError::Closed(CloseReason::PeerAbort { .. })), "{error:?}");
        drop(open.drain(1..));
        soon(any.close()).await;
        // No UDP socket is left there.
        let error = soon(a_client().connect(to("127.0.0.1", 1, udp))).await.unwrap_err();
        let refused = matches!(error, ConnectError::Closed(CloseReason::Unreachable { .. }));
        assert!(refused, "{error:?}");
        let [near, far] = &open[0];
        echoes(near, far).await;
        reaches(to("127.0.0.2", 1, udp), &single).await;
    }
}

#[tokio::test]
async fn a_new_listener_does_not_take_the_old_ones_associations() {
    let (shared, udp) = (SharedSockets::default(), free_port());
    let old = listener(&shared, &["127.0.0.1"], 1, udp).unwrap();
    let [near, far] = reaches(to("127.0.0.1", 1, udp), &old).await;
    drop(old);
    let new = listener(&shared, &["127.0.0.1"], 1, udp).unwrap();
    let [beside, theirs] = reaches(to("127.0.0.1", 1, udp), &new).await;
    echoes(&near, &far).await;
    echoes(&beside, &theirs).await;
}

#[tokio::test]
async fn an_unreachable_peer_is_reported_to_the_endpoint_that_sent() {
    let (shared, udp) = (SharedSockets::default(), free_port());
    let first = listener(&shared, &["127.0.0.1"], 1, udp).unwrap();
    let second = listener(&shared, &["127.0.0.1"], 2, udp).unwrap();
    let closed = free_port();
    for endpoint in [&first, &second] {
        let error = soon(endpoint.connect(to("127.0.0.1", 9, closed))).await.unwrap_err();
        let refused = matches!(error, ConnectError::Closed(CloseReason::Unreachable { .. }));
        assert!(refused, "{error:?}");
    }
}

#[tokio::test]
async fn encrypted_packets_do_not_show_their_port() {
    let error = Endpoint::bind(EndpointOptions {
        encryption: Some(Encryption::default()),
        shared: Some(SharedSockets::default()),
        ..options(&["127.0.0.1"], &Config::default())
    })
    .unwrap_err();
    assert!(matches!(error, BindError::SharedNotEncrypted), "{error:?}");
}

#[cfg(target_os = "linux")]
mod given {
    use std::io::IoSlice;
    use std::net::{IpAddr, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use nix::sys::socket::{
        ControlMessage, MsgFlags, SockaddrIn, getsockopt, sendmsg, setsockopt, sockopt,
    };
    use polypath::proto::Unreachable;
    use polypath::{ForeignError, PortSpace};

    use super::*;

    /// Other processes have SCTP port 9.
    #[derive(Default)]
    struct Others(Mutex<Vec<(IpAddr, u16, usize)>>, Mutex<Vec<ForeignError>>);

    impl PortSpace for Others {
        fn is_elsewhere(&self, _to: IpAddr, port: u16) -> bool {
            port == 9
        }

        fn misdirected(&self, to: IpAddr, port: u16, packets: usize) {
            self.0.lock().unwrap().push((to, port, packets));
        }

        fn unreachable(&self, error: ForeignError) {
            self.1.lock().unwrap().push(error);
        }
    }

    /// A UDP socket that coalesces or does not, its port, and a duplicate.
    fn socket(coalesces: bool) -> (UdpSocket, u16, UdpSocket) {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        setsockopt(&socket, sockopt::UdpGroSegment, &coalesces).unwrap();
        let port = socket.local_addr().unwrap().port();
        (socket.try_clone().unwrap(), port, socket)
    }

    /// Sends malformed packets for these SCTP ports as datagrams that the kernel does not separate.
    fn send_together(udp: u16, ports: &[u8]) {
        let packet = |port: &u8| [0, 5, 0, *port, 1, 1, 1, 1, 1, 1, 1, 1];
        let bytes: Vec<u8> = ports.iter().flat_map(packet).collect();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let control = [ControlMessage::UdpGsoSegments(&12)];
        let to = SockaddrIn::new(127, 0, 0, 1, udp);
        let parts = [IoSlice::new(&bytes)];
        sendmsg(from.as_raw_fd(), &parts, &control, MsgFlags::empty(), Some(&to)).unwrap();
    }

    #[tokio::test]
    async fn coalesced_packets_of_other_processes_are_reported_and_get_no_reply() {
        let (socket, udp, _) = socket(true);
        let others = Arc::new(Others::default());
        let shared = SharedSockets::given(vec![socket], others.clone());
        let server = listener(&shared, &["0.0.0.0"], 1, udp).unwrap();
        let malformed = || server.stats().malformed + server.stats().bad_checksum;
        let [near, far] = reaches(to("127.0.0.1", 1, udp), &server).await;
        // Of port 2 there is nothing known: this process replies to packets for it.
        send_together(udp, &[1, 9, 1, 9, 9, 2]);
        // The kernel has selected this socket for it.
        send_together(udp, &[9]);
        send_together(udp, &[1]);
        while malformed() < 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(malformed(), 4);
        assert_eq!(*others.0.lock().unwrap(), [(ip("127.0.0.1"), 9, 3)]);
        echoes(&near, &far).await;
    }

    #[tokio::test]
    async fn errors_about_packets_of_other_processes_are_passed_on() {
        let (socket, udp, same) = socket(true);
        let others = Arc::new(Others::default());
        let shared = SharedSockets::given(vec![socket], others.clone());
        let _server = listener(&shared, &["0.0.0.0"], 1, udp).unwrap();
        let closed = SocketAddr::new(ip("127.0.0.1"), free_port());
        // RFC 1122 3.2.2: the ICMP message quotes the beginning of the datagram.
        let packet = [0, 9, 0, 5, 1, 1, 1, 1, 0, 0, 0, 0];
        same.send_to(&packet, closed).unwrap();
        while others.1.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let error = others.1.lock().unwrap()[0].clone();
        assert_eq!(error.port(), Some(9));
        let quoted = packet.to_vec();
        assert_eq!(error, ForeignError { destination: closed, what: Unreachable::Port, quoted });
    }

    #[tokio::test]
    async fn an_endpoint_does_not_change_whether_the_kernel_coalesces() {
        for coalesces in [false, true] {
            let (socket, udp, same) = socket(coalesces);
            let shared = SharedSockets::given(vec![socket], Arc::new(Others::default()));
            let _server = listener(&shared, &["0.0.0.0"], 1, udp).unwrap();
            assert_eq!(getsockopt(&same, sockopt::UdpGroSegment), Ok(coalesces));
        }
    }
}
