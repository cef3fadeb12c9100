//! ClientHellos in clear: the only records of unknown hosts that are answered.
//!
//! The first ClientHello is answered without keeping state: the answer has a cookie, and only a
//! client that repeats the ClientHello with that cookie gets a connection (RFC 9147 5.1,
//! RFC 6347 4.2.1). The second ClientHello is the first one with the cookie inserted, and perhaps
//! with as many bytes of padding removed (RFC 8446 4.1.2). So the first one is rebuilt by removing
//! the cookie. In DTLS 1.3, where the first one is part of the signed transcript, the cookie
//! depends on all of it, which proves that the rebuilt one is the same.

use crate::trust::Refusal;
use crate::version::Version;

/// A ClientHello, alone in its datagram and not fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientHello<'a> {
    datagram: &'a [u8],
    /// The client's random number, different in each handshake.
    pub(crate) random: [u8; 32],
    /// The newest version that it offers.
    pub(crate) version: Version,
    /// The cookie of DTLS 1.2, without its length.
    legacy_cookie: Span,
    /// Offset of the length of all extensions.
    extensions: usize,
    /// The extensions with the cookie and the padding, including their headers.
    cookie: Option<Span>,
    padding: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
const CLIENT_HELLO: u8 = 1;
const HELLO_VERIFY_REQUEST: u8 = 3;
const SUPPORTED_VERSIONS: usize = 43;
const COOKIE: usize = 44;
const PADDING: usize = 21;
/// Bytes of a record's header, and of a handshake message's.
const RECORD: usize = 13;
const MESSAGE: usize = 12;
/// Versions in a record's header: DTLS 1.2, which 1.3 uses as well, and 1.0, which some stacks use
/// for their first record.
const VERSIONS: [[u8; 2]; 2] = [[0xfe, 0xfd], [0xfe, 0xff]];
/// DTLS 1.3, in the supported_versions extension (RFC 9147 5.3).
const DTLS_13: [u8; 2] = [0xfe, 0xfc];

/// The client's random number in the beginning of a ClientHello that an ICMP message quotes.
pub(crate) fn quoted_random(quoted: &[u8]) -> Option<[u8; 32]> {
    let hello = quoted.first() == Some(&HANDSHAKE) && quoted.get(RECORD) == Some(&CLIENT_HELLO);
    // After the version.
    let random = quoted.get(RECORD + MESSAGE + 2..)?.first_chunk()?;
    hello.then_some(*random)
}

impl<'a> ClientHello<'a> {
    /// Parses a datagram; `None` if it is not a ClientHello.
    pub(crate) fn parse(datagram: &'a [u8]) -> Option<Self> {
        let header = datagram.get(..RECORD + MESSAGE)?;
        let message = datagram.len() - RECORD - MESSAGE;
        let u24 = |at: usize| {
            usize::from(header[at]) << 16
                | usize::from(header[at + 1]) << 8
                | usize::from(header[at + 2])
        };
        let plain = header[0] == HANDSHAKE
            && VERSIONS.contains(&[header[1], header[2]])
            && header[3..5] == [0, 0];
        let whole = usize::from(u16::from_be_bytes([header[11], header[12]])) == MESSAGE + message
            && u24(14) == message
            && u24(19) == 0
            && u24(22) == message;
        if !plain || !whole || header[13] != CLIENT_HELLO {
            return None;
        }
        let mut reader = Reader { bytes: datagram, at: RECORD + MESSAGE };
        reader.skip(2)?;
        let random = reader.take(32)?.try_into().ok()?;
        // Session, the cookie of DTLS 1.2, suites, compression.
        reader.vector_u8()?;
        let start = reader.at + 1;
        reader.vector_u8()?;
        let legacy_cookie = Span { start, end: reader.at };
        reader.vector_u16()?;
        reader.vector_u8()?;
        let extensions = reader.at;
        let len = reader.u16()?;
        if reader.at + len != datagram.len() {
            return None;
        }
        let (mut cookie, mut padding) = (None, None);
        let mut version = Version::Dtls12;
        while reader.at < datagram.len() {
            let start = reader.at;
            let kind = reader.u16()?;
            reader.vector_u16()?;
            let place = match kind {
                SUPPORTED_VERSIONS => {
                    // After the extension's header, a list with a length of one byte.
                    let versions = datagram[start + 4..reader.at].get(1..).unwrap_or_default();
                    if versions.chunks_exact(2).any(|version| version == DTLS_13) {
                        version = Version::Dtls13;
                    }
                    continue;
                }
                COOKIE => &mut cookie,
                PADDING => &mut padding,
                _ => continue,
            };
            if place.replace(Span { start, end: reader.at }).is_some() {
                return None;
            }
        }
        Some(Self { datagram, random, version, legacy_cookie, extensions, cookie, padding })
    }

    /// The cookie that the client repeats, if there is one.
    pub(crate) fn cookie(&self) -> Option<&'a [u8]> {
        if self.version == Version::Dtls12 {
            let Span { start, end } = self.legacy_cookie;
            return Some(&self.datagram[start..end]).filter(|cookie| !cookie.is_empty());
        }
        let Span { start, end } = self.cookie?;
        // After the extension's header, with its own length (RFC 8446 4.2.2).
        let cookie = &self.datagram[start + 4..end];
        let len = usize::from(u16::from_be_bytes([*cookie.first()?, *cookie.get(1)?]));
        cookie.get(2..).filter(|cookie| cookie.len() == len)
    }

    /// The bytes that a cookie is made for. In DTLS 1.3, the message without its record header. In
    /// DTLS 1.2, the client's random number alone, because the first ClientHello is not part of the
    /// signed transcript.
    pub(crate) fn bound(&self) -> &'a [u8] {
        match self.version {
            Version::Dtls13 => &self.datagram[RECORD..],
            Version::Dtls12 => &self.datagram[RECORD + MESSAGE + 2..][..32],
        }
    }

    /// The answer to a ClientHello that offers no allowed version (protocol_version) or nothing
    /// else that is supported (insufficient_security): a fatal alert. It has the record number of
    /// the ClientHello, which is larger than that of any earlier answer.
    pub(crate) fn refused(&self, minimum: Version) -> Vec<u8> {
        let outdated = self.version < minimum;
        let mut answer =
            alert(if outdated { PROTOCOL_VERSION } else { INSUFFICIENT_SECURITY }).to_vec();
        answer[5..11].copy_from_slice(&self.datagram[5..11]);
        answer
    }

    /// Candidates for the first ClientHello that this one repeats.
    pub(crate) fn firsts(&self) -> Vec<Vec<u8>> {
        if self.version == Version::Dtls12 {
            let Span { start, end } = self.legacy_cookie;
            if start == end {
                return Vec::new();
            }
            let mut cut = self.datagram.to_vec();
            cut.drain(start..end);
            cut[start - 1] = 0;
            return vec![self.first(cut, self.extensions - (end - start))];
        }
        let Some(cookie) = self.cookie else { return Vec::new() };
        let mut firsts = Vec::new();
        if let Some(padding) = self.padding {
            let mut grown = self.datagram.to_vec();
            let room = cookie.end - cookie.start;
            set(&mut grown, padding.start + 2, padding.end - padding.start - 4 + room);
            grown.splice(padding.end..padding.end, std::iter::repeat_n(0, room));
            let moved = if padding.start < cookie.start { room } else { 0 };
            grown.drain(cookie.start + moved..cookie.end + moved);
            firsts.push(self.first(grown, self.extensions));
        }
        let mut cut = self.datagram.to_vec();
        cut.drain(cookie.start..cookie.end);
        firsts.push(self.first(cut, self.extensions));
        firsts
    }

    /// Sets all lengths of a datagram with changed extensions, and the numbers of the first
    /// ClientHello.
    fn first(&self, mut datagram: Vec<u8>, extensions: usize) -> Vec<u8> {
        let len = datagram.len();
        set(&mut datagram, 11, len - RECORD);
        // The lower two bytes of three: a datagram is shorter than 2^16.
        set(&mut datagram, 15, len - RECORD - MESSAGE);
        set(&mut datagram, 23, len - RECORD - MESSAGE);
        set(&mut datagram, extensions, len - extensions - 2);
        // Record 0, message 0.
        datagram[5..11].fill(0);
        datagram[17..19].fill(0);
        datagram
    }
}

fn set(datagram: &mut [u8], at: usize, value: usize) {
    datagram[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

/// Whether a datagram is a DTLS ClientHello.
#[inline]
pub fn is_client_hello(datagram: &[u8]) -> bool {
    // A host that does not encrypt calls this for every packet.
    datagram.first() == Some(&HANDSHAKE) && ClientHello::parse(datagram).is_some()
}

/// The answer to a ClientHello by a host that does not encrypt: a fatal alert (handshake_failure).
/// It is shorter than the ClientHello.
pub const REFUSAL: [u8; 15] = alert(HANDSHAKE_FAILURE);

const HANDSHAKE_FAILURE: u8 = 40;
const PROTOCOL_VERSION: u8 = 70;
const INSUFFICIENT_SECURITY: u8 = 71;

const fn alert(description: u8) -> [u8; 15] {
    [ALERT, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, description]
}

/// The refusal in the first answer to a ClientHello, if it is one; `minimum` is the oldest allowed
/// version.
pub(crate) fn refusal(datagram: &[u8], minimum: Version) -> Option<Refusal> {
    let header = datagram.get(..RECORD + 1)?;
    let clear = header[1] == 0xfe && header[3..5] == [0, 0];
    match header[0] {
        // A fatal alert in clear.
        ALERT if clear && datagram.len() == REFUSAL.len() && datagram[11..14] == [0, 2, 2] => {
            match datagram[14] {
                HANDSHAKE_FAILURE => Some(Refusal::Plain),
                description => Some(alerted(description, minimum)),
            }
        }
        // DTLS 1.3 has no HelloVerifyRequest (RFC 9147 5.1).
        HANDSHAKE if clear && header[RECORD] == HELLO_VERIFY_REQUEST => {
            (minimum == Version::Dtls13).then_some(Refusal::Version)
        }
        _ => None,
    }
}

/// The refusal that a fatal alert (RFC 8446 6.2) in a handshake reports.
pub(crate) const fn alerted(description: u8, minimum: Version) -> Refusal {
    match description {
        PROTOCOL_VERSION | INSUFFICIENT_SECURITY if matches!(minimum, Version::Dtls13) => {
            Refusal::Version
        }
        // bad_certificate to certificate_unknown, unknown_ca, access_denied.
        42..=46 | 48 | 49 => Refusal::ByPeer,
        alert => Refusal::Alert { alert },
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    fn skip(&mut self, len: usize) -> Option<()> {
        self.take(len).map(|_| ())
    }

    fn u16(&mut self) -> Option<usize> {
        let bytes = self.take(2)?;
        Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    fn vector_u8(&mut self) -> Option<()> {
        let len = usize::from(self.take(1)?[0]);
        self.skip(len)
    }

    fn vector_u16(&mut self) -> Option<()> {
        let len = self.u16()?;
        self.skip(len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ClientHello with these extensions.
    fn hello(record: u8, extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![0xfe, 0xfd];
        body.extend([7; 32]);
        body.extend([0, 0, 0, 2, 0x13, 3, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let len = body.len() as u16;
        let mut datagram = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, record];
        datagram.extend((len + 12).to_be_bytes());
        datagram.extend([1, 0]);
        datagram.extend(len.to_be_bytes());
        datagram.extend([0, record, 0, 0, 0, 0]);
        datagram.extend(len.to_be_bytes());
        datagram.extend(body);
        datagram
    }

    const BEFORE: [u8; 7] = [0, 43, 0, 3, 2, 0xfe, 0xfc];
    const COOKIE: [u8; 9] = [0, 44, 0, 5, 0, 3, 1, 2, 3];
    const AFTER: [u8; 4] = [0, 10, 0, 0];

    const PADDING: [u8; 15] = [0, 21, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const LESS: [u8; 6] = [0, 21, 0, 2, 0, 0];

    #[test]
    fn the_first_is_made_of_the_second() {
        for (before, after) in [
            ([&BEFORE[..], &AFTER].concat(), [&BEFORE[..], &COOKIE, &AFTER].concat()),
            ([&BEFORE[..], &PADDING].concat(), [&BEFORE[..], &COOKIE, &LESS].concat()),
            (
                [&BEFORE[..], &PADDING, &AFTER].concat(),
                [&BEFORE[..], &LESS, &AFTER, &COOKIE].concat(),
            ),
            ([&BEFORE[..], &LESS, &AFTER].concat(), [&BEFORE[..], &LESS, &AFTER, &COOKIE].concat()),
        ] {
            let (first, second) = (hello(0, &before), hello(1, &after));
            let parsed = ClientHello::parse(&second).unwrap();
            assert_eq!(parsed.cookie(), Some(&[1, 2, 3][..]));
            assert_eq!(parsed.random, [7; 32]);
            assert!(parsed.firsts().contains(&first), "{:02x?}", parsed.firsts());
            let parsed = ClientHello::parse(&first).unwrap();
            assert_eq!((parsed.cookie(), parsed.firsts()), (None, Vec::new()));
        }
    }

    #[test]
    fn others_are_none() {
        let good = hello(0, &BEFORE);
        assert!(is_client_hello(&good));
        for end in 0..good.len() {
            assert!(!is_client_hello(&good[..end]), "cut at {end}");
        }
        assert!(!is_client_hello(&[&good[..], &[0]].concat()));
        assert!(!is_client_hello(&hello(0, &[&COOKIE[..], &COOKIE].concat())), "two cookies");
        assert!(!is_client_hello(&REFUSAL));
        for minimum in [Version::Dtls12, Version::Dtls13] {
            assert_eq!(refusal(&REFUSAL, minimum), Some(Refusal::Plain));
            assert_eq!(refusal(&good, minimum), None);
            assert_eq!(refusal(&alert(42), minimum), Some(Refusal::ByPeer));
            assert_eq!(refusal(&alert(47), minimum), Some(Refusal::Alert { alert: 47 }));
        }
        let older = hello(5, &AFTER);
        let answer = ClientHello::parse(&older).unwrap().refused(Version::Dtls13);
        assert_eq!((answer[14], answer[10]), (PROTOCOL_VERSION, 5));
        assert_eq!(refusal(&answer, Version::Dtls13), Some(Refusal::Version));
        assert_eq!(refusal(&answer, Version::Dtls12), Some(Refusal::Alert { alert: 70 }));
    }

    #[test]
    fn a_hello_of_dtls_1_2_has_its_cookie_elsewhere() {
        let first = hello(0, &AFTER);
        assert_eq!(ClientHello::parse(&hello(0, &BEFORE)).unwrap().version, Version::Dtls13);
        let parsed = ClientHello::parse(&first).unwrap();
        assert_eq!((parsed.version, parsed.cookie()), (Version::Dtls12, None));
        assert_eq!((parsed.bound(), parsed.firsts()), (&[7; 32][..], Vec::new()));
        // After the header, version, random number and an empty session.
        let mut second = hello(1, &AFTER);
        let at = RECORD + MESSAGE + 2 + 32 + 1;
        second.splice(at..=at, [3, 1, 2, 3]);
        for (at, add) in [(12, 3), (16, 3), (24, 3)] {
            second[at] += add;
        }
        let parsed = ClientHello::parse(&second).unwrap();
        assert_eq!((parsed.version, parsed.cookie()), (Version::Dtls12, Some(&[1, 2, 3][..])));
        assert_eq!(parsed.firsts(), [first]);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(at in 0usize..80, byte: u8, end in 0usize..100) {
            let mut datagram = hello(1, &[&BEFORE[..], &COOKIE, &AFTER].concat());
            if let Some(place) = datagram.get_mut(at) {
                *place = byte;
            }
            datagram.truncate(end);
            if let Some(hello) = ClientHello::parse(&datagram) {
                let _ = hello.cookie();
                // The candidates are ClientHellos without a cookie.
                for first in hello.firsts() {
                    prop_assert!(ClientHello::parse(&first).unwrap().cookie().is_none());
                }
            }
        }
    }
}
