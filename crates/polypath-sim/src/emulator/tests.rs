//! Tests between real sockets: times, losses and commands.

use std::time::{Duration, Instant};

use super::*;
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

#[test]
fn paths_are_cut_and_mended() {
    let (sender, receiver) = (socket([127, 79, 0, 1]), socket([127, 79, 0, 2]));
    let path = PathSpec::default().delay(Span::millis(5));
    let emulator = start(&scenario(&[path], &receiver, 79), None).unwrap();
    let front = emulator.paths()[0].front;
    emulator.cut(0).unwrap();
    assert!(!emulator.report().unwrap().links[0].up);
    sender.send_to(b"lost", front).unwrap();
    assert!(receives_nothing(&receiver));
    emulator.mend(0).unwrap();
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
