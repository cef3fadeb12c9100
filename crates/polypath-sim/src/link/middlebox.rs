//! A middlebox in front of a link that changes or drops packets by their contents.

use polypath_proto::wire::chunk_type;
use serde::{Deserialize, Serialize};

/// What a middlebox in front of a link does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Middlebox {
    /// The ECN field of every packet is cleared, so that it is not ECN-capable and marks get lost
    /// (bleaching, RFC 9000 13.4.2).
    pub clear_ecn: bool,
    /// Packets that would have to be fragmented, because they exceed the link's MTU, are dropped.
    pub drop_fragments: bool,
    /// Packets with a chunk type, and INIT and INIT ACK with a parameter type, that RFC 9260 does
    /// not define are dropped.
    pub drop_extensions: bool,
}

/// INIT and INIT ACK: a header of four bytes, then five fields of 16 bytes, then parameters
/// (RFC 9260 3.3.2).
const BEFORE_PARAMETERS: usize = 4 + 16;
/// The chunk types 0 to 14 and the parameter types 1 to 12 are those of RFC 9260 3.2 and 3.3.2.
const LAST_CHUNK: u8 = chunk_type::SHUTDOWN_COMPLETE;
const LAST_PARAMETER: u16 = 12;

/// Whether an SCTP packet has a chunk or parameter of a type that RFC 9260 does not define.
pub(super) fn has_extension(sctp: &[u8]) -> bool {
    let mut rest = sctp.get(12..).unwrap_or_default();
    while let [chunk, _, high, low, ..] = *rest {
        let length = usize::from(u16::from_be_bytes([high, low])).max(4);
        let opens = matches!(chunk, chunk_type::INIT | chunk_type::INIT_ACK);
        let parameters = rest.get(BEFORE_PARAMETERS..length.min(rest.len()));
        if chunk > LAST_CHUNK || (opens && parameters.is_some_and(has_unknown_parameter)) {
            return true;
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

fn has_unknown_parameter(mut rest: &[u8]) -> bool {
    while let [first, second, high, low, ..] = *rest {
        if !(1..=LAST_PARAMETER).contains(&u16::from_be_bytes([first, second])) {
            return true;
        }
        let length = usize::from(u16::from_be_bytes([high, low])).max(4);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with an INIT that has parameters of these types.
    fn init(parameters: &[u16]) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        let length = (BEFORE_PARAMETERS + 8 * parameters.len()) as u16;
        bytes.extend_from_slice(&[chunk_type::INIT, 0]);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&[0xff; 16]);
        for parameter in parameters {
            bytes.extend_from_slice(&parameter.to_be_bytes());
            bytes.extend_from_slice(&[0, 7, 9, 9, 9, 0]);
        }
        bytes
    }

    #[test]
    fn extensions_are_what_rfc_9260_does_not_define() {
        assert!(!has_extension(&init(&[])));
        assert!(!has_extension(&init(&[5, 6, 7, 8, 9, 11, 12])));
        // Supported Extensions (RFC 5061), FORWARD TSN Supported (RFC 3758).
        for parameter in [0x8008, 0xc000, 0, 13] {
            assert!(has_extension(&init(&[5, parameter])), "{parameter:#x}");
        }
        for chunk in 0..=u8::MAX {
            let mut packet = vec![0; 12];
            packet.extend_from_slice(&[3, 0, 0, 4, chunk, 0, 0, 4]);
            assert_eq!(has_extension(&packet), chunk > 14, "{chunk}");
        }
    }

    #[test]
    fn truncated_packets_are_looked_at_as_far_as_they_go() {
        let whole = init(&[5, 0x8008]);
        for length in 0..whole.len() {
            let known = length >= whole.len() - 4;
            assert_eq!(has_extension(&whole[..length]), known, "{length}");
        }
        assert!(!has_extension(&[0; 64]));
    }
}
