//! Tests between real sockets: times, losses and commands.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::*;
use crate::link::Codel;
use crate::scenario::{Fault, PathSpec, TopologyName};
use crate::units::{QueueLimit, Rate, Span};

/// A scenario whose sockets bind any free port.
fn scenario(paths: &[PathSpec], receiver: &UdpSocket, net: u8) -> Scenario {
    let mut scenario = Scenario::new("emulator");
    scenario.paths = paths.to_vec();
    let address = |host| move |n| IpAddr::V4(Ipv4Addr::new(127, net, n as u8, host));
    scenario.emulator = Some(EmulatorSpec {
        senders: (0..paths.len()).map(address(1)).collect(),
        receivers: (0..paths.len()).map(address(2)).collect(),
        front_port: 0,
        back_port: 0,
        receiver_port: receiver.local_addr().unwrap().port(),
    });
    scenario
}

fn socket(ip: [u8; 4]) -> UdpSocket {
    UdpSocket::bind((IpAddr::from(ip), 0)).unwrap()
}

/// Receives a datagram that is under way, which may take long on a busy machine.
fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    receive_within(socket, Duration::from_secs(60)).expect("nothing arrives")
}

fn receive_within(socket: &UdpSocket, time: Duration) -> Option<(Vec<u8>, SocketAddr)> {
    socket.set_read_timeout(Some(time)).unwrap();
    let mut bytes = [0; 2048];
    socket.recv_from(&mut bytes).ok().map(|(size, from)| (bytes[..size].to_vec(), from))
}

fn receives_nothing(socket: &UdpSocket) -> bool {
    receive_within(socket, Duration::from_millis(500)).is_none()
}

#[test]
fn background_traffic_is_refused() {
    let scenario = Scenario::new("crossed").topology(TopologyName::DualDumbbell);
    let error = start(&scenario, None).unwrap_err();
    assert!(matches!(error, EmulatorError::Traffic), "{error}");
}

#[test]
fn there_and_back_with_true_addresses_and_the_links_delay() {
    let (sender, receiver) = (socket([127, 77, 0, 1]), socket([127, 77, 0, 2]));
    let path = PathSpec::new(Rate::mbit(1), Span::millis(40));
    let emulator = start(&scenario(&[path], &receiver, 77), None).unwrap();
    let ends = &emulator.paths()[0];
    assert_eq!(ends.front.ip(), receiver.local_addr().unwrap().ip());
    // 1250 bytes with headers at 1 Mbit/s: 10 ms, and 40 ms of propagation.
    let model = Duration::from_millis(50);
    let mut seen = Duration::ZERO;
    let mut send = || {
        let before = Instant::now();
        sender.send_to(&[7; 1222], ends.front).unwrap();
        assert_eq!(receive(&receiver), (vec![7; 1222], ends.back));
        let took = before.elapsed();
        assert!(took >= model, "{took:?}");
        seen += took - model;
        took
    };
    // A busy machine adds delay, but not every time.
    let sent = 1 + (0..200).position(|_| send() < model * 2).expect("never in time");
    receiver.send_to(b"back", ends.back).unwrap();
    assert_eq!(receive(&sender), (b"back".to_vec(), ends.front));
    let report = emulator.report().unwrap();
    let delivered: Vec<_> = report.links.iter().map(|l| l.counters.delivered).collect();
    assert_eq!(delivered, [sent as u64, 1]);
    // The reported lateness is part of the time measured in excess of the model's. `most` may
    // belong to the datagram back, whose time was not measured.
    let late = report.punctuality;
    assert_eq!(late.datagrams, 1 + sent as u64);
    assert!(!late.most.is_zero() && late.most <= late.total, "{late:?}");
    assert!(late.total - late.most <= seen, "{late:?}, {seen:?}");
    emulator.stop().unwrap();
}

#[test]
fn the_receiver_may_speak_first_on_a_path() {
    let (sender, receiver) = (socket([127, 83, 0, 1]), socket([127, 83, 0, 2]));
    let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
    let bind = |ip: [u8; 4], port| UdpSocket::bind((IpAddr::from(ip), port)).unwrap();
    let (second_sender, second_receiver) =
        (bind([127, 83, 1, 1], port(&sender)), bind([127, 83, 1, 2], port(&receiver)));
    let paths = [PathSpec::default(), PathSpec::default()];
    let emulator = start(&scenario(&paths, &receiver, 83), None).unwrap();
    let [first, second] = [0, 1].map(|n| &emulator.paths()[n]);
    sender.send_to(b"INIT", first.front).unwrap();
    assert_eq!(receive(&receiver).0, b"INIT");
    second_receiver.send_to(b"HEARTBEAT", second.back).unwrap();
    assert_eq!(receive(&second_sender), (b"HEARTBEAT".to_vec(), second.front));
}

#[test]
fn the_queue_limit_and_the_rate_hold() {
    let (sender, receiver) = (socket([127, 78, 0, 1]), socket([127, 78, 0, 2]));
    let path = PathSpec::new(Rate::mbit(8), Span::millis(1)).queue(QueueLimit::Packets(20));
    let emulator = start(&scenario(&[path], &receiver, 78), None).unwrap();
    let begin = Instant::now();
    for n in 0..100u8 {
        sender.send_to(&[n; 972], emulator.paths()[0].front).unwrap();
    }
    // One packet in transmission, twenty queued (a few more if the relay was slow to read).
    let (mut received, mut last) = (0, 0);
    let forward = loop {
        if let Some((bytes, _)) = receive_within(&receiver, Duration::from_millis(100)) {
            assert!(received == 0 || bytes[0] > last, "out of order");
            (received, last) = (received + 1, bytes[0]);
        } else {
            let forward = emulator.report().unwrap().links.remove(0).counters;
            if forward.offered == 100 && forward.delivered == received {
                break forward;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{forward:?}, {received} received");
        }
    };
    assert!((21..=100).contains(&received), "{received}");
    assert!(begin.elapsed() >= Duration::from_millis(20));
    forward.check().unwrap();
    assert_eq!(forward.dropped_queue + received, 100);
}

/// Datagrams of two paths' sockets wait under CoDel, and leave at the rate of their link.
#[test]
fn datagrams_wait_under_codel() {
    let (sender, receiver) = (socket([127, 87, 0, 1]), socket([127, 87, 0, 2]));
    let path = PathSpec {
        codel: Some(Codel { flows: 1024, ..Codel::default() }),
        ..PathSpec::new(Rate::mbit(8), Span::millis(1))
    };
    let emulator = start(&scenario(&[path], &receiver, 87), None).unwrap();
    let begin = Instant::now();
    for n in 0..60u8 {
        sender.send_to(&[n; 972], emulator.paths()[0].front).unwrap();
    }
    for n in 0..60u8 {
        assert_eq!(receive(&receiver).0, [n; 972]);
        // Each takes a millisecond.
        assert!(begin.elapsed() >= Duration::from_millis(u64::from(n) + 2));
    }
    let report = emulator.report().unwrap();
    assert_eq!(report.links[0].counters.delivered, 60);
    assert!(report.links[0].queueing.most >= Duration::from_millis(1), "{report:?}");
    emulator.stop().unwrap();
}

#[test]
fn paths_are_cut_and_restoreed() {
    let (sender, receiver) = (socket([127, 79, 0, 1]), socket([127, 79, 0, 2]));
    let path = PathSpec::default().delay(Span::millis(5));
    let emulator = start(&scenario(&[path], &receiver, 79), None).unwrap();
    let front = emulator.paths()[0].front;
    emulator.cut(0).unwrap();
    assert!(!emulator.report().unwrap().links[0].up);
    sender.send_to(b"lost", front).unwrap();
    assert!(receives_nothing(&receiver));
    emulator.restore(0).unwrap();
    assert!(emulator.report().unwrap().links[0].up);
    sender.send_to(b"found", front).unwrap();
    assert_eq!(receive(&receiver).0, b"found");
}

#[test]
fn faults_are_timed_from_the_first_datagram() {
    let (sender, receiver) = (socket([127, 80, 0, 1]), socket([127, 80, 0, 2]));
    let path = PathSpec::default().delay(Span::millis(1));
    let mut scenario = scenario(&[path], &receiver, 80);
    scenario.faults.push(Fault::down(0, Span::millis(100)));
    let emulator = start(&scenario, None).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    sender.send_to(b"first", emulator.paths()[0].front).unwrap();
    assert_eq!(receive(&receiver).0, b"first");
    std::thread::sleep(Duration::from_millis(200));
    sender.send_to(b"second", emulator.paths()[0].front).unwrap();
    assert!(receives_nothing(&receiver));
}

#[test]
fn an_address_in_use_is_one_clear_line() {
    let (receiver, taken) = (socket([127, 81, 0, 2]), socket([127, 81, 0, 2]));
    let mut scenario = scenario(&[PathSpec::default()], &receiver, 81);
    let spec = scenario.emulator.as_mut().unwrap();
    spec.front_port = taken.local_addr().unwrap().port();
    let error = start(&scenario, None).unwrap_err().to_string();
    let address = taken.local_addr().unwrap();
    assert!(error.starts_with(&format!("{address} cannot be bound: ")), "{error}");
}

/// The near end of a pair of sockets, in place of a device.
struct Wire(UnixDatagram);

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Port for Wire {
    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize> {
        self.0.recv(packet)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(drop)
    }
}

/// A port and the host's end of it.
fn port() -> (Box<dyn Port>, UnixDatagram) {
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    (Box::new(Wire(near)), far)
}

/// An IPv4 packet of another protocol than UDP and SCTP, with this many bytes.
fn ip_packet(size: usize, ecn: u8) -> Vec<u8> {
    let mut packet = vec![0; size];
    packet[0] = 0x45;
    packet[1] = ecn;
    packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    packet[9] = 6;
    packet
}

#[test]
fn whole_packets_pass_between_ports() {
    let path = PathSpec::new(Rate::mbit(1), Span::millis(40));
    let mut scenario = Scenario::new("ports");
    scenario.paths = vec![path];
    let ((near_a, a), (near_b, b)) = (port(), port());
    let emulator = start_between(&scenario, vec![[near_a, near_b]]).unwrap();
    let mut bytes = [0; 2048];
    let begin = Instant::now();
    a.send(&ip_packet(1250, 0)).unwrap();
    assert_eq!(b.recv(&mut bytes).unwrap(), 1250);
    // 1250 bytes at 1 Mbit/s: 10 ms, and 40 ms of propagation.
    assert!(begin.elapsed() >= Duration::from_millis(50));
    assert_eq!(&bytes[..1250], ip_packet(1250, 0));
    b.send(&ip_packet(60, 0)).unwrap();
    assert_eq!(a.recv(&mut bytes).unwrap(), 60);
    let report = emulator.report().unwrap();
    let counted = |n: usize| report.links[n].counters.delivered_bytes;
    assert_eq!((counted(0), counted(1)), (1250, 60), "sizes are those of IP packets");
    emulator.stop().unwrap();
}

#[test]
fn the_queue_delays_and_marks_packets() {
    let mut path = PathSpec::new(Rate::mbit(1), Span::millis(1));
    path.mark_at = Some(2);
    let mut scenario = Scenario::new("ports");
    scenario.paths = vec![path];
    let ((near_a, a), (near_b, b)) = (port(), port());
    let emulator = start_between(&scenario, vec![[near_a, near_b]]).unwrap();
    for _ in 0..10 {
        a.send(&ip_packet(1250, 2)).unwrap();
    }
    let mut bytes = [0; 2048];
    let marks: Vec<u8> = (0..10)
        .map(|_| {
            assert_eq!(b.recv(&mut bytes).unwrap(), 1250);
            bytes[1] & 3
        })
        .collect();
    // Packets are sent at once and wait for each other: the first three find less than two waiting.
    assert_eq!(marks[..3], [2; 3]);
    let queueing = emulator.report().unwrap().links[0].queueing;
    assert_eq!(queueing.packets, 10);
    assert!(queueing.most <= Duration::from_millis(90), "{queueing:?}");
    // Where the thread was late, the queue was shorter.
    assert_eq!(marks.contains(&3), queueing.most > Duration::from_millis(20), "{marks:?}");
}

#[test]
fn each_path_needs_a_pair_of_ports() {
    let mut scenario = Scenario::new("ports");
    scenario.paths = vec![PathSpec::default(), PathSpec::default()];
    let ((a, _), (b, _)) = (port(), port());
    let error = start_between(&scenario, vec![[a, b]]).unwrap_err();
    assert_eq!(error.to_string(), "1 pairs of ports for 2 paths");
}
