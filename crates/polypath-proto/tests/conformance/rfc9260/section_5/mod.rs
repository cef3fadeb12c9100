//! RFC 9260, section 5: Association Initialization.

mod addresses;
mod cookie;
mod opening;
mod paths;
mod restart;
mod unexpected;

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::bytes::{chunk, chunks, elements, parameters, reseal, u32_at};
use crate::common::*;
use polypath_proto::wire::{self, cause_code};
use polypath_proto::*;

/// A listening host, and a hand-built peer that has an association with it.
fn opened() -> (Net, Hand) {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    (net, hand)
}

/// A host that has sent its INIT to a hand-built peer.
fn calling() -> (Net, Hand) {
    let mut net = Setup { listens: [true, true], ..Setup::default() }.build();
    let hand = Hand::new(0).be_called(&mut net);
    (net, hand)
}

/// A host that has sent its COOKIE ECHO to a hand-built peer.
fn echoed() -> (Net, Hand) {
    let (mut net, hand) = calling();
    assert_eq!(texts(&hand.init_ack(&mut net)), ["COOKIE ECHO"]);
    (net, hand)
}

/// A hand-built peer that has the cookie of a listening host.
fn with_cookie(config: Config) -> (Net, Hand) {
    let mut net = pair(1, config);
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|_| {});
    hand.learn(&answers[0]);
    (net, hand)
}

fn texts(packets: &[Sent]) -> Vec<String> {
    packets.iter().map(Sent::text).collect()
}

/// The fixed fields of an INIT or INIT ACK: tag, a_rwnd, streams out and in, TSN.
fn fields(sent: &Sent) -> (u32, u32, u16, u16, u32) {
    let init = chunks(&sent.bytes).remove(0);
    assert!([1, 2].contains(&init.ty), "{}", sent.text());
    let streams = u32_at(&init.value, 8);
    let (tag, window, tsn) =
        (u32_at(&init.value, 0), u32_at(&init.value, 4), u32_at(&init.value, 12));
    (tag, window, (streams >> 16) as u16, streams as u16, tsn)
}

/// The cookie in an INIT ACK.
fn cookie_of(sent: &Sent) -> Vec<u8> {
    let list = parameters(&chunk(&sent.bytes, 2));
    let mut cookies = list.into_iter().filter(|p| p.ty == 7);
    let cookie = cookies.next().expect("a State Cookie");
    assert!(cookies.next().is_none() && !cookie.value.is_empty());
    cookie.value
}

/// Whether the cookie contains these four bytes.
fn holds(cookie: &[u8], word: u32) -> bool {
    cookie.windows(4).any(|bytes| bytes == word.to_be_bytes())
}

fn remotes(net: &Net, h: usize) -> BTreeSet<IpAddr> {
    net.a(h).paths().map(|p| p.remote).collect()
}

/// Checks that the association works: the peer's data is delivered, and data is sent with the
/// peer's tag.
fn works(net: &mut Net, hand: &Hand, n: u32) {
    let before = net.hosts[hand.host].received.len();
    hand.data(net, n);
    assert_eq!(net.hosts[hand.host].received.len(), before + 1, "{}", net.tail(5));
    let mark = net.log.len();
    net.send(hand.host, 0, payload(n.into(), 10)).unwrap();
    let sent = net.sent_since(hand.host, mark);
    assert!(sent.iter().any(|p| p.has("DATA") && p.tag == hand.tag), "{}", net.tail(5));
}
