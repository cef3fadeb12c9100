//! Self-signed certificates (X.509, RFC 5280): writes the local one, and reads the needed parts of
//! a peer's.
//!
//! As in WebRTC (RFC 8827 6.5), no authority vouches for a certificate: its fingerprint identifies
//! the owner, and is compared with known ones. So names, dates and extensions have no meaning.

/// `SEQUENCE { OID id-ecPublicKey, OID prime256v1 }` (RFC 5480 2.1.1).
const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// `SEQUENCE { OID ecdsa-with-SHA256 }` (RFC 5758 3.2).
const ECDSA_SHA256: &[u8] =
    &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// `CN=polypath`.
const NAME: &[u8] = b"\x30\x13\x31\x11\x30\x0f\x06\x03\x55\x04\x03\x0c\x08polypath";
/// Valid from 2000 on, without an end (RFC 5280 4.1.2.5).
const VALIDITY: &[u8] = b"\x30\x20\x17\x0d000101000000Z\x18\x0f99991231235959Z";

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// Maximum number of bytes of a serial number (RFC 5280 4.1.2.2). The first byte is 1: the number
/// is positive, and its encoding is not shortened.
pub(crate) const SERIAL: usize = 20;

/// The parts of a certificate that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// Public key: an uncompressed point of P-256.
    pub(crate) point: &'a [u8],
}

/// Writes the part that is signed.
pub(crate) fn to_be_signed(serial: &[u8; SERIAL], point: &[u8]) -> Vec<u8> {
    let version = element(VERSION, &[&element(INTEGER, &[&[2]])]);
    let key = element(SEQUENCE, &[P256, &element(BIT_STRING, &[&[0], point])]);
    let serial = element(INTEGER, &[serial]);
    element(SEQUENCE, &[&version, &serial, ECDSA_SHA256, NAME, VALIDITY, NAME, &key])
}

/// Joins the signed part with its signature.
pub(crate) fn signed(to_be_signed: &[u8], signature: &[u8]) -> Vec<u8> {
    let signature = element(BIT_STRING, &[&[0], signature]);
    element(SEQUENCE, &[to_be_signed, ECDSA_SHA256, &signature])
}

/// Reads a certificate; `None` if it is malformed, or its key is not one for ECDSA with P-256.
pub(crate) fn read(certificate: &[u8]) -> Option<Parts<'_>> {
    let (body, rest) = take(certificate, SEQUENCE)?;
    if !rest.is_empty() {
        return None;
    }
    let (signed, _) = take(body, SEQUENCE)?;
    let (_, rest) = take(signed, VERSION)?;
    let (_serial, rest) = take(rest, INTEGER)?;
    // Algorithm, issuer, validity, subject.
    let mut rest = rest;
    for _ in 0..4 {
        rest = take(rest, SEQUENCE)?.1;
    }
    let (key, _) = take(rest, SEQUENCE)?;
    let bits = key.strip_prefix(P256)?;
    let (bits, rest) = take(bits, BIT_STRING)?;
    let point = bits.strip_prefix(&[0])?;
    (rest.is_empty() && point.len() == 65 && point[0] == 4).then_some(Parts { point })
}

/// An element with its header (DER, X.690 8.1).
fn element(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let len: usize = contents.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match len {
        0..=0x7f => out.push(len as u8),
        0x80..=0xff => out.extend([0x81, len as u8]),
        _ => out.extend([0x82, (len >> 8) as u8, len as u8]),
    }
    for part in contents {
        out.extend_from_slice(part);
    }
    out
}

/// The contents of the element with this tag at the beginning, and what follows it.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    if found != tag {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => {
            let len = u16::from_be_bytes([*rest.first()?, *rest.get(1)?]);
            (usize::from(len), rest.get(2..)?)
        }
        _ => return None,
    };
    Some((rest.get(..len)?, rest.get(len..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Vec<u8> {
        let mut point = [7; 65];
        point[0] = 4;
        signed(&to_be_signed(&[1; SERIAL], &point), &[9; 71])
    }

    #[test]
    fn what_is_written_is_read() {
        let certificate = example();
        let parts = read(&certificate).unwrap();
        assert_eq!(parts.point[1..], [7; 64]);
    }

    #[test]
    fn a_cut_one_is_none() {
        let certificate = example();
        for end in 0..certificate.len() {
            assert_eq!(read(&certificate[..end]), None);
        }
        assert_eq!(read(&[&certificate[..], &[0]].concat()), None);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }

        #[test]
        fn one_wrong_byte_does_no_harm(at in 0usize..250, byte: u8) {
            let mut certificate = example();
            if let Some(place) = certificate.get_mut(at) {
                *place = byte;
            }
            let _ = read(&certificate);
        }
    }
}
