//! Packets between the application's end and the engine's end of a socket pair: a header, then the
//! payload. The pair is a SOCK_SEQPACKET one, which keeps the boundaries.

use std::net::{IpAddr, SocketAddr};

use crate::bytes::{Reader, Writer};

/// Size of the header.
pub(crate) const HEADER: usize = 56;

/// Maximum payload of a packet; a larger message arrives in several.
pub(crate) const PAYLOAD: usize = 192 * 1024;

/// What a packet is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    /// A message, or a piece of one.
    Data,
    /// A notification (RFC 6458 6).
    Notification,
    /// Fills the buffer until the connection is established; the engine drops it.
    Filler,
    /// A new association for accept; its socket accompanies the packet.
    Accept,
    /// End of the association (SCTP_EOF, SCTP_ABORT).
    End,
    /// Something waits in the memory of the process, see [`Inbox`](crate::inbox::Inbox).
    Ready,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// Flags of `sinfo_flags`.
    pub(crate) flags: u16,
    pub(crate) stream: u16,
    /// Stream sequence number; of received messages.
    pub(crate) ssn: u16,
    /// In the byte order of the application, which SCTP does not change.
    pub(crate) ppid: u32,
    pub(crate) context: u32,
    /// SCTP_PR_SCTP_TTL and others, with the value.
    pub(crate) pr_policy: u16,
    /// The message ends with this packet.
    pub(crate) end: bool,
    pub(crate) pr_value: u32,
    /// Id of the association.
    pub(crate) association: i32,
    /// Address of the peer; of received messages.
    pub(crate) peer: Option<SocketAddr>,
    /// TSN; of received messages.
    pub(crate) tsn: u32,
    /// The cumulative TSN; of received messages that are unordered, and otherwise 0 as in Linux.
    pub(crate) cumulative_tsn: u32,
}

impl Header {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            flags: 0,
            stream: 0,
            ssn: 0,
            ppid: 0,
            context: 0,
            pr_policy: 0,
            end: true,
            pr_value: 0,
            association: 0,
            peer: None,
            tsn: 0,
            cumulative_tsn: 0,
        }
    }

    pub(crate) fn is_data(&self) -> bool {
        self.kind == Kind::Data
    }

    pub(crate) fn write(&self) -> [u8; HEADER] {
        let mut writer = Writer::default();
        writer.u16(self.kind as u16).u16(self.flags).u16(self.stream).u16(self.ssn);
        writer.u32(self.ppid).u32(self.context).u16(self.pr_policy).u16(u16::from(self.end));
        writer.u32(self.pr_value).i32(self.association);
        match self.peer.map(|peer| (peer.ip(), peer.port())) {
            None => writer.raw(&[0; 20]),
            Some((IpAddr::V4(ip), port)) => writer.u16(4).u16(port).raw(&ip.octets()).raw(&[0; 12]),
            Some((IpAddr::V6(ip), port)) => writer.u16(6).u16(port).raw(&ip.octets()),
        };
        writer.u32(self.tsn).u32(self.cumulative_tsn);
        writer.done().try_into().expect("the header has a fixed size")
    }

    /// The header at the start of a packet; `None` if the application has written to the
    /// descriptor by other means.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let reader = Reader(packet.get(..HEADER)?);
        let kind = match reader.u16(0) {
            0 => Kind::Data,
            1 => Kind::Notification,
            2 => Kind::Filler,
            3 => Kind::Accept,
            4 => Kind::End,
            5 => Kind::Ready,
            _ => return None,
        };
        let ip: Option<IpAddr> = match reader.u16(28) {
            4 => packet[32..36].try_into().ok().map(|ip: [u8; 4]| ip.into()),
            6 => packet[32..48].try_into().ok().map(|ip: [u8; 16]| ip.into()),
            _ => None,
        };
        Some(Self {
            kind,
            peer: ip.map(|ip| SocketAddr::new(ip, reader.u16(30))),
            flags: reader.u16(2),
            stream: reader.u16(4),
            ssn: reader.u16(6),
            ppid: reader.u32(8),
            context: reader.u32(12),
            pr_policy: reader.u16(16),
            end: reader.u16(18) != 0,
            pr_value: reader.u32(20),
            association: reader.i32(24),
            tsn: reader.u32(48),
            cumulative_tsn: reader.u32(52),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive() {
        let header = Header {
            flags: 1,
            stream: 2,
            ssn: 3,
            ppid: 4,
            context: 5,
            pr_policy: 6,
            end: false,
            pr_value: 7,
            association: -8,
            peer: "[fd00::1]:9".parse().ok(),
            tsn: 9,
            cumulative_tsn: 10,
            ..Header::new(Kind::Accept)
        };
        assert_eq!(Header::read(&header.write()), Some(header));
        assert_eq!(Header::read(&header.write()[1..]), None);
        assert_eq!(Header::read(&[9; HEADER]), None);
    }
}
