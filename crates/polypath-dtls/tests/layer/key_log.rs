//! The logged secrets decrypt the records, by the rules of RFC 9147 and RFC 5246.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use polypath_dtls::{Identity, KeyLog, Options, Trust, Version};
use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey, quic};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk};

use crate::{Host, Pair, way};

type Lines = Arc<Mutex<Vec<String>>>;

fn logged(minimum: Version) -> (Host, Lines) {
    let lines = Lines::default();
    let mut options = Options::new(Identity::generate().unwrap(), Trust::Anyone).at_least(minimum);
    let written = lines.clone();
    options.key_log = Some(KeyLog::new(move |line| written.lock().unwrap().push(line.to_owned())));
    (Host::with(options), lines)
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The secrets of one connection by their labels.
fn secrets(lines: &Lines) -> BTreeMap<String, Vec<u8>> {
    let lines = lines.lock().unwrap();
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
    assert!(words.iter().all(|words| words.len() == 3 && words[1].len() == 64), "{lines:?}");
    assert!(words.iter().all(|line| line[1] == words[0][1]), "one connection: {lines:?}");
    words.iter().map(|line| (line[0].to_owned(), bytes(line[2]))).collect()
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label (RFC 8446 7.1) with the prefix of RFC 9147 5.9.
fn expand(secret: &[u8], label: &str, len: usize) -> Vec<u8> {
    let length = u16::try_from(len).unwrap().to_be_bytes();
    let name = [b"dtls13", label.as_bytes()].concat();
    let info = [&length[..], &[u8::try_from(name.len()).unwrap()], &name, &[0]];
    let mut out = vec![0; len];
    let prk = Prk::new_less_safe(HKDF_SHA256, secret);
    prk.expand(&info, Length(len)).unwrap().fill(&mut out).unwrap();
    out
}

/// The content of a record of DTLS 1.3 (RFC 9147 4): a header with 16 bits of the record number and
/// a length, and the ciphertext.
fn decrypt(record: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    assert_eq!(record[0] & 0b1111_1100, 0b0010_1100, "no connection id, number and length");
    let suites = [(&AES_128_GCM, &quic::AES_128), (&CHACHA20_POLY1305, &quic::CHACHA20)];
    suites.into_iter().find_map(|(suite, masks)| {
        let masks =
            quic::HeaderProtectionKey::new(masks, &expand(secret, "sn", suite.key_len())).unwrap();
        let mask = masks.new_mask(&record[5..21]).unwrap();
        let mut header = record[..5].to_vec();
        header[1] ^= mask[0];
        header[2] ^= mask[1];
        let mut nonce: [u8; 12] = expand(secret, "iv", 12).try_into().unwrap();
        nonce[10] ^= header[1];
        nonce[11] ^= header[2];
        let key = UnboundKey::new(suite, &expand(secret, "key", suite.key_len())).unwrap();
        let mut content = record[5..].to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = LessSafeKey::new(key).open_in_place(nonce, Aad::from(header), &mut content);
        plain.ok().map(|plain| plain.to_vec())
    })
}

#[test]
fn the_secrets_decrypt_what_both_sides_send() {
    let ((here, of_client), (there, of_server)) =
        (logged(Version::Dtls13), logged(Version::Dtls13));
    let mut pair = Pair::new(here, there);
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    let known = secrets(&of_client);
    assert_eq!(known, secrets(&of_server));
    let labels: Vec<&str> = known.keys().map(String::as_str).collect();
    let expected = ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"];
    assert_eq!(labels[..2], expected);
    assert_eq!(labels[2..], ["SERVER_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"]);
    for (from_here, label) in
        [(true, "CLIENT_TRAFFIC_SECRET_0"), (false, "SERVER_TRAFFIC_SECRET_0")]
    {
        let path = if from_here { way(1, 2) } else { way(2, 1) };
        assert!(pair.send(from_here, path, b"a packet of SCTP"));
        pair.settle();
        let (_, record) = pair.carried.last().unwrap();
        // The content, and its type: application data.
        assert_eq!(decrypt(record, &known[label]).unwrap(), b"a packet of SCTP\x17");
        assert!(decrypt(record, &known["CLIENT_HANDSHAKE_TRAFFIC_SECRET"]).is_none());
    }
    assert_eq!(of_client.lock().unwrap().len(), 4, "each secret once");
}

#[test]
fn each_connection_has_lines_of_its_own() {
    let (server, of_server) = logged(Version::Dtls13);
    let (client, of_client) = logged(Version::Dtls13);
    let mut pair = Pair::new(client, server);
    for path in [way(1, 2), way(3, 4)] {
        pair.send(true, path, b"first");
    }
    pair.settle();
    let randoms = |lines: &Lines| {
        let lines = lines.lock().unwrap();
        let mut randoms = BTreeMap::<String, usize>::new();
        for line in lines.iter() {
            *randoms.entry(line.split(' ').nth(1).unwrap().to_owned()).or_default() += 1;
        }
        randoms
    };
    assert_eq!(randoms(&of_client), randoms(&of_server));
    assert_eq!(randoms(&of_client).into_values().collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn the_older_version_logs_its_master_secret() {
    let ((here, of_client), (there, of_server)) =
        (logged(Version::Dtls12), logged(Version::Dtls12));
    let mut pair = Pair::new(here, there);
    pair.hide = true;
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    assert_eq!(pair.there.packets(), [b"first"]);
    let known = secrets(&of_client);
    assert_eq!(known, secrets(&of_server));
    assert_eq!(known.keys().collect::<Vec<_>>(), ["CLIENT_RANDOM"]);
    assert_eq!(known["CLIENT_RANDOM"].len(), 48);
}

#[test]
fn without_a_log_nothing_is_recorded() {
    let (client, lines) = logged(Version::Dtls13);
    drop(client);
    // A new layer takes over the objects of a dropped one.
    let mut pair = Pair::of_strangers();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    assert_eq!(pair.there.packets(), [b"first"]);
    assert!(lines.lock().unwrap().is_empty());
}
