//! Round trips until the first byte of a new association arrives. TCP with TLS 1.3 needs two and a
//! half: SYN, ClientHello, and data behind the client's Finished.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use polypath_dtls::{Fingerprint, Identity, Layer, Options, Trust};
use polypath_proto::{
    Config, Ecn, Encapsulation, Endpoint, EndpointConfig, Event, FourTuple, Message, Remote, Seed,
    StreamId, Time,
};

use crate::way;

/// One-way delay.
const DELAY: Duration = Duration::from_millis(50);

/// A host of the virtual network: SCTP, and DTLS below it.
struct Stack {
    sctp: Endpoint,
    dtls: Option<Layer>,
}

fn stack(host: u8, config: &Config, unproven: Option<usize>) -> Stack {
    let address = IpAddr::from([192, 0, 2, host]);
    let encapsulation = Encapsulation::Udp { port: 9899 };
    let config = EndpointConfig {
        listen: true,
        association: config.clone(),
        ..EndpointConfig::new(9260, vec![address], encapsulation)
    };
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other constructor")]
    let dtls = unproven.map(|unproven| {
        let mut options = Options::new(Identity::generate().unwrap(), Trust::Anyone);
        options.unproven = unproven;
        Layer::new(options, &[host; 32], Instant::now())
    });
    Stack { sctp: Endpoint::new(config, Seed::from_u64(host.into())), dtls }
}

impl Stack {
    /// Everything that the host sends now.
    fn transmit(&mut self, now: Time) -> Vec<(FourTuple, Vec<u8>)> {
        let mut sent = Vec::new();
        let mut buf = vec![0; 1 << 16];
        while let Some(t) = self.sctp.poll_transmit(now, &mut buf) {
            let way = FourTuple { local: (t.source, 9899).into(), remote: t.destination };
            for packet in buf[..t.size].chunks(t.segment_size.unwrap_or(t.size)) {
                match &mut self.dtls {
                    None => sent.push((way, packet.to_vec())),
                    Some(dtls) => {
                        let mut record = Vec::new();
                        let way = dtls.seal(now, way, None, packet, &mut record);
                        sent.extend(way.map(|way| (way, record)));
                    }
                }
            }
        }
        sent.extend(
            self.dtls.iter_mut().flat_map(|dtls| std::iter::from_fn(|| dtls.poll_transmit())),
        );
        sent
    }

    fn receive(&mut self, now: Time, way: FourTuple, datagram: &[u8]) {
        let sctp = &mut self.sctp;
        let mut deliver = |_: Fingerprint, packet: &[u8]| {
            sctp.handle_datagram(now, way, Ecn::NotEct, packet);
        };
        match &mut self.dtls {
            None => sctp.handle_datagram(now, way, Ecn::NotEct, datagram),
            Some(dtls) => dtls.handle_datagram(now, way, datagram, &mut deliver),
        }
    }
}

/// Halves of a round trip until a message that was given to `send` at once is readable at the other
/// host.
fn half_trips(config: &Config, unproven: Option<usize>) -> u128 {
    let mut stacks = [1, 2].map(|host| stack(host, config, unproven));
    let mut now = Time::from_secs(1000);
    let begun = now;
    let to = Remote { address: SocketAddr::from(([192, 0, 2, 2], 9899)), local: None };
    let id = stacks[0].sctp.connect(now, 9260, &[to]).unwrap();
    let first = Message::new(StreamId(0), &b"first"[..]);
    stacks[0].sctp.association_mut(id).unwrap().send(now, first).unwrap();
    let mut wire: VecDeque<(Time, usize, FourTuple, Vec<u8>)> = VecDeque::new();
    loop {
        for (side, stack) in stacks.iter_mut().enumerate() {
            for (way, datagram) in stack.transmit(now) {
                wire.push_back((now + DELAY, 1 - side, crate::back(way), datagram));
            }
        }
        let (at, side, way, datagram) = wire.pop_front().expect("the handshake goes on");
        now = at;
        stacks[side].receive(now, way, &datagram);
        while let Some((_, event)) = stacks[side].sctp.poll_event() {
            if side == 1 && event == Event::Readable {
                return now.since(begun).as_nanos() / DELAY.as_nanos();
            }
        }
    }
}

#[test]
fn data_with_the_cookie_echo_saves_a_round_trip() {
    assert_eq!(half_trips(&Config::rfc9260(), None), 5);
    assert_eq!(half_trips(&Config::modern(), None), 3, "as many as TCP");
}

#[test]
fn an_encrypted_association_needs_no_more_round_trips_than_tls_over_tcp() {
    assert_eq!(half_trips(&Config::modern(), Some(32)), 5);
    assert_eq!(half_trips(&Config::modern(), Some(0)), 7, "with a cookie of DTLS");
    assert_eq!(half_trips(&Config::rfc9260(), Some(0)), 9);
}

/// A ClientHello from the address with this last byte.
fn hello(from: u8) -> Vec<u8> {
    let mut client = stack(1, &Config::modern(), Some(0)).dtls.unwrap();
    let now = Time::from_secs(1000);
    assert_eq!(client.seal(now, way(from, 2), None, b"packet", &mut Vec::new()), None);
    client.poll_transmit().unwrap().1
}

/// A client that does not prove its address gets at most three times the bytes that it has sent,
/// and few such clients are served at a time.
#[test]
fn few_clients_are_trusted_without_a_cookie_and_not_for_long() {
    let mut server = stack(2, &Config::modern(), Some(4)).dtls.unwrap();
    let mut now = Time::from_secs(1000);
    for from in 10..20 {
        let (hello, mut answers) = (hello(from), 0);
        server.handle_datagram(now, way(2, from), &hello, &mut |_: Fingerprint, _: &[u8]| {});
        while let Some((_, datagram)) = server.poll_transmit() {
            answers += datagram.len();
        }
        let trusted = from < 14;
        assert!(answers > 0 && answers <= 3 * hello.len(), "{answers} bytes");
        assert_eq!(answers > hello.len() / 3, trusted, "{answers} bytes to client {from}");
    }
    assert_eq!((server.stats().unproven, server.stats().cookies), (4, 6));
    // The flight is sent again, up to the same limit, until the handshake is given up.
    let mut again = 0;
    while let Some(at) = server.poll_timeout().filter(|at| *at < Time::from_secs(1060)) {
        now = now.max(at);
        server.handle_timeout(now);
        while let Some((_, datagram)) = server.poll_transmit() {
            again += datagram.len();
        }
    }
    assert!(again <= 4 * 3 * hello(30).len(), "{again} bytes");
    let hello = hello(30);
    server.handle_datagram(now, way(2, 30), &hello, &mut |_: Fingerprint, _: &[u8]| {});
    assert_eq!(server.stats().unproven, 5, "there is room again");
}
