//! The causes as text.

use std::fmt::{self, Display, Formatter, Write};

use super::super::chunk_type;
use super::Cause;
use crate::wire::parameter::{Parameter, Parameters, parameter_type};

impl Display for Cause<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InvalidStreamIdentifier(stream) => write!(f, "there is no stream {stream}"),
            Self::MissingMandatoryParameter(types) => {
                f.write_str("mandatory parameters are missing")?;
                list(f, types.iter().map(ParameterName))
            }
            Self::StaleCookie { staleness_us: 0 } => f.write_str("the state cookie came too late"),
            Self::StaleCookie { staleness_us } => {
                let (ms, us) = (staleness_us / 1000, staleness_us % 1000);
                write!(f, "the state cookie came {ms}.{us:03} ms too late")
            }
            Self::OutOfResource => f.write_str("resources ran out"),
            Self::UnresolvableAddress(raw) => {
                f.write_str("an address cannot be resolved")?;
                list(f, Parameters::new(raw).iter().filter_map(Result::ok).map(Address))
            }
            Self::UnrecognizedChunk(raw) => {
                f.write_str("a chunk is of a type that is not known")?;
                list(f, raw.first().map(|&ty| ChunkName(ty)))
            }
            Self::InvalidMandatoryParameter => {
                f.write_str("a mandatory parameter has an invalid value")
            }
            Self::UnrecognizedParameters(parameters) => {
                f.write_str("parameters are of types that are not known")?;
                list(f, parameters.iter().filter_map(Result::ok).map(|p| ParameterName(p.ty())))
            }
            Self::NoUserData(tsn) => write!(f, "the DATA chunk with TSN {tsn} has no user data"),
            Self::CookieReceivedWhileShuttingDown => {
                f.write_str("a state cookie came while the association was being shut down")
            }
            Self::RestartWithNewAddresses(addresses) => {
                f.write_str("the association was restarted with new addresses")?;
                list(f, addresses.iter().filter_map(Result::ok).map(Address))
            }
            Self::UserInitiatedAbort(reason) => {
                f.write_str("the user aborted the association")?;
                list(f, (!reason.is_empty()).then_some(Text(reason)))
            }
            Self::ProtocolViolation(info) => {
                f.write_str("the protocol was violated")?;
                list(f, (!info.is_empty()).then_some(Text(info)))
            }
            Self::AddressRefused { refusal, .. } => f.write_str(refusal.words()),
            Self::UnsupportedHmac(id) => write!(f, "the HMAC identifier {id} is not known"),
            Self::Unknown { code, .. } => write!(f, "error cause {code}, which is not known"),
        }
    }
}

/// Writes ": a, b, c", or nothing if there are no items.
fn list(f: &mut Formatter<'_>, items: impl IntoIterator<Item: Display>) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        f.write_str(if i == 0 { ": " } else { ", " })?;
        item.fmt(f)?;
    }
    Ok(())
}

struct ParameterName(u16);

impl Display for ParameterName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match parameter_type::name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#06x}", self.0),
        }
    }
}

struct ChunkName(u8);

impl Display for ChunkName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match chunk_type::name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#04x}", self.0),
        }
    }
}

struct Address<'a>(Parameter<'a>);

impl Display for Address<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.0, self.0.address()) {
            (_, Some(address)) => address.fmt(f),
            // RFC 9260 3.3.2.1.4: the name ends with at least one null byte.
            (Parameter::HostName(raw), None) => {
                let name = raw.get(4..).unwrap_or_default();
                Text(name.strip_suffix(&[0]).unwrap_or(name)).fmt(f)
            }
            _ => ParameterName(self.0.ty()).fmt(f),
        }
    }
}

/// Text received from the network. Unprintable characters are escaped, so that a peer cannot send
/// control sequences to a terminal.
struct Text<'a>(&'a [u8]);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    // Printable, but `escape_debug` escapes them.
                    '"' | '\'' | '\\' => f.write_char(c)?,
                    c => c.escape_debug().fmt(f)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::U16List;
    use super::*;
    use crate::{StreamId, Tsn};

    #[test]
    fn plain_words() {
        let types = U16List::from_be_bytes(&[0, 7, 0xc1, 2]).unwrap();
        let addresses = Parameters::new(&[0, 5, 0, 8, 10, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 2]);
        let unknown = Parameters::new(&[0xc0, 1, 0, 4, 0x80, 0x18, 0, 4]);
        for (cause, words) in [
            (Cause::InvalidStreamIdentifier(StreamId(7)), "there is no stream 7"),
            (
                Cause::MissingMandatoryParameter(types),
                "mandatory parameters are missing: State Cookie, 0xc102",
            ),
            (
                Cause::StaleCookie { staleness_us: 1_002_003 },
                "the state cookie came 1002.003 ms too late",
            ),
            (Cause::StaleCookie { staleness_us: 0 }, "the state cookie came too late"),
            (Cause::OutOfResource, "resources ran out"),
            (
                Cause::UnresolvableAddress(b"\x00\x0b\x00\x08a.b\0"),
                "an address cannot be resolved: a.b",
            ),
            (Cause::UnresolvableAddress(b""), "an address cannot be resolved"),
            (
                Cause::UnrecognizedChunk(&[0xc3, 0, 0, 4]),
                "a chunk is of a type that is not known: 0xc3",
            ),
            (Cause::UnrecognizedChunk(&[]), "a chunk is of a type that is not known"),
            (Cause::InvalidMandatoryParameter, "a mandatory parameter has an invalid value"),
            (
                Cause::UnrecognizedParameters(unknown),
                "parameters are of types that are not known: 0xc001, 0x8018",
            ),
            (Cause::NoUserData(Tsn(3)), "the DATA chunk with TSN 3 has no user data"),
            (
                Cause::CookieReceivedWhileShuttingDown,
                "a state cookie came while the association was being shut down",
            ),
            (
                Cause::RestartWithNewAddresses(addresses),
                "the association was restarted with new addresses: 10.0.0.1, 10.0.0.2",
            ),
            (Cause::UserInitiatedAbort(b""), "the user aborted the association"),
            (
                Cause::UserInitiatedAbort("it's über".as_bytes()),
                "the user aborted the association: it's über",
            ),
            (
                Cause::ProtocolViolation(b"a\x1b[31m\xff"),
                "the protocol was violated: a\\u{1b}[31m\\xff",
            ),
            (Cause::UnsupportedHmac(9), "the HMAC identifier 9 is not known"),
            (
                Cause::AddressRefused {
                    refusal: super::super::AddressRefusal::LastAddress,
                    request: &[],
                },
                "the last address cannot be deleted",
            ),
            (
                Cause::Unknown { code: 99, raw: &[0, 99, 0, 4] },
                "error cause 99, which is not known",
            ),
        ] {
            assert_eq!(cause.to_string(), words);
        }
    }
}
