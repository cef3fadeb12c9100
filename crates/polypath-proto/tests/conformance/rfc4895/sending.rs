//! Section 6.2: sending authenticated chunks.

use super::*;

/// Chunks that the peer has listed, and others: everything that an association sends.
#[test]
fn s6_2_r1_r3_r4_listed_chunks_are_sent_behind_an_auth_chunk() {
    let names = ["DATA", "SACK", "HEARTBEAT", "HEARTBEAT ACK", "SHUTDOWN", "COOKIE ACK"];
    let types = [0, 3, 4, 5, 7, 11];
    for asked in [&types[..], &[0], &[3], &[4, 5], &[7, 11], &[0, 3]] {
        let mut net = pair_with(asked, &[]);
        net.establish();
        net.nth("DATA", &[3, 8], Fate::Drop);
        for h in 0..2 {
            let now = net.now;
            net.am(h).request_heartbeat(now, PathId(0)).unwrap();
            net.send(h, 0, payload(1, 20_000)).unwrap();
        }
        net.run(S(5));
        net.shutdown(0);
        net.run(S(5));
        assert!(net.closed(0).unwrap().is_graceful());
        let mut seen = 0;
        for packet in &net.log {
            let list: Vec<&str> = packet.chunks.iter().map(|c| c.name.as_str()).collect();
            let auth = list.iter().position(|name| *name == "AUTH").unwrap_or(list.len());
            for (at, name) in list.iter().enumerate() {
                let place = names.iter().position(|known| known == name);
                if place.is_some_and(|place| asked.contains(&types[place])) {
                    assert!(at > auth, "{}", packet.text());
                    seen += 1;
                }
            }
        }
        assert!(seen >= 2, "{asked:?}");
    }
}

#[test]
fn s6_2_r2_one_of_the_shared_keys_is_selected() {
    let keys: [(u16, &[u8]); 3] = [(4, b"four"), (5, b"five"), (9, b"nine")];
    let mut net = pair_with(&[], &keys);
    let peer = Peer::open(&mut net, &[DATA]);
    net.send(1, 0, payload(1, 10)).unwrap();
    assert_eq!(peer.verified(net.log.last().unwrap(), b"nine"), Some((9, SHA_256)));
    net.am(1).change_auth_keys(|keys| keys.activate(5)).unwrap();
    net.send(1, 0, payload(1, 10)).unwrap();
    assert_eq!(peer.verified(net.log.last().unwrap(), b"five"), Some((5, SHA_256)));
}

#[test]
fn s6_2_r5_without_a_shared_key_the_empty_one_has_number_0() {
    let mut net = pair_with(&[], &[]);
    let peer = Peer::open(&mut net, &[DATA]);
    net.send(1, 0, payload(1, 10)).unwrap();
    assert_eq!(peer.verified(net.log.last().unwrap(), b""), Some((0, SHA_256)));
}

/// Payloads with and without padding, bundled chunks, both algorithms, keys of several lengths.
#[test]
fn s6_2_r6_r7_the_code_is_computed_over_the_auth_chunk_and_all_that_follows() {
    let long = [b'k'; 200];
    for hmac in [SHA_1, SHA_256] {
        for secret in [&b""[..], b"k", &long] {
            let mut net = pair_with(&[], &[(2, secret)]);
            let peer = Peer::meet(&mut net, &|p| {
                p.random(&[7; 32]).unwrap();
                p.chunk_list(&[DATA, 3]).unwrap();
                p.hmac_algorithms(&[hmac]).unwrap();
            });
            peer.hand.echo(&mut net);
            let mark = net.log.len();
            for len in [1, 2, 3, 4, 1300, 3000] {
                net.send(1, 0, payload(1, len)).unwrap();
            }
            for n in 1..4 {
                peer.hand.data(&mut net, n);
            }
            let sent = net.sent_since(1, mark);
            assert!(sent.len() >= 4);
            for packet in sent {
                let verified = peer.verified(&packet, secret);
                assert_eq!(verified, Some((2, hmac)), "{}", packet.text());
            }
        }
    }
}
