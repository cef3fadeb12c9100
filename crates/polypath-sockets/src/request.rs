//! What a call that sends requests: its control messages (RFC 6458 5.3), or else the defaults of
//! the association (RFC 6458 8.1.13, 8.1.14).

use std::ffi::c_int;
use std::net::IpAddr;

use libc::{cmsghdr, msghdr};

use crate::bytes::{Reader, Writer};
use crate::errno::Errno;
use crate::frame::{Header, Kind};
use crate::link::{Link, lock};
use crate::socket::Sock;
use crate::{abi, report, security};

/// Flags of messages that programs can set as a default.
const DEFAULT_FLAGS: u16 =
    abi::SCTP_UNORDERED | abi::SCTP_ADDR_OVER | abi::SCTP_ABORT | abi::SCTP_EOF;
/// Flags of messages.
const FLAGS: u16 =
    DEFAULT_FLAGS | abi::SCTP_SACK_IMMEDIATELY | abi::SCTP_PR_SCTP_PRIO | abi::SCTP_SENDALL;

/// The control messages of a message.
pub(crate) struct Request {
    /// What they request; see [`Request::header`].
    pub(crate) asked: Header,
    /// SCTP_SNDINFO or SCTP_SNDRCV is among them.
    has_info: bool,
    /// SCTP_PRINFO or SCTP_SNDRCV is among them.
    has_policy: bool,
    /// Further addresses of the peer.
    pub(crate) peers: Vec<IpAddr>,
    /// SCTP_INIT, in the order of `sctp_initmsg`; 0 for the socket's.
    pub(crate) init: [u16; 4],
}

impl Request {
    /// Reads the control messages.
    ///
    /// # Safety
    ///
    /// The control buffer of the message is valid.
    pub(crate) unsafe fn read(sock: &Sock, message: &msghdr) -> Errno<Self> {
        let mut request = Self {
            asked: Header::new(Kind::Data),
            has_info: false,
            has_policy: false,
            peers: Vec::new(),
            init: [0; 4],
        };
        // SAFETY: by the contract of this function; the macros stay within the control buffer.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(message);
            while !next.is_null() {
                let cmsghdr { cmsg_len, cmsg_level, cmsg_type, .. } = *next;
                let length = cmsg_len.checked_sub(libc::CMSG_LEN(0) as usize);
                let data =
                    std::slice::from_raw_parts(libc::CMSG_DATA(next), length.ok_or(libc::EINVAL)?);
                if cmsg_level == abi::IPPROTO_SCTP {
                    request.apply(sock, cmsg_type, data)?;
                }
                next = libc::CMSG_NXTHDR(message, next);
            }
        }
        if request.asked.flags & !FLAGS != 0 {
            return Err(libc::EINVAL);
        }
        if request.asked.flags & abi::SCTP_ADDR_OVER != 0 {
            if message.msg_name.is_null() {
                return Err(libc::EINVAL);
            }
            report::missed("SCTP_ADDR_OVER (sent on the path in use)");
        }
        Ok(request)
    }

    /// Applies a control message.
    fn apply(&mut self, sock: &Sock, kind: c_int, data: &[u8]) -> Errno<()> {
        let reader = Reader(data);
        match (kind, data.len()) {
            (abi::CMSG_INIT, 8) => {
                self.init = [0, 2, 4, 6].map(|offset| reader.u16(offset));
            }
            (abi::CMSG_SNDRCV, 32) => {
                self.asked = sndrcv(reader);
                (self.has_info, self.has_policy) = (true, true);
            }
            (abi::CMSG_SNDINFO, 16) => {
                sndinfo(&mut self.asked, reader);
                self.has_info = true;
            }
            (abi::CMSG_PRINFO, 8) if reader.u16(0) & !abi::SCTP_PR_SCTP_PRIO == 0 => {
                self.asked.pr_policy = reader.u16(0);
                self.asked.pr_value = reader.u32(4);
                self.has_policy = true;
            }
            // Without authentication, Linux ignores the key.
            (abi::CMSG_AUTHINFO, 2) if !security::is_authenticated(&lock(&sock.options))? => {}
            (abi::CMSG_AUTHINFO, 2) => {
                report::missed("sendmsg with SCTP_AUTHINFO");
                return Err(libc::EOPNOTSUPP);
            }
            (abi::CMSG_DSTADDRV4, 4..) => {
                self.peers.push([data[0], data[1], data[2], data[3]].into());
            }
            (abi::CMSG_DSTADDRV6, 16..) => {
                let ip: [u8; 16] = data[..16].try_into().map_err(|_| libc::EINVAL)?;
                self.peers.push(IpAddr::from(ip).to_canonical());
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    }

    /// The header of the message on an association.
    pub(crate) fn header(&self, link: &Link) -> Header {
        let default = lock(&link.defaults).send;
        let mut header = self.asked;
        if !self.has_info {
            let Header { stream, flags, ppid, context, .. } = default;
            header = Header { stream, flags, ppid, context, ..header };
        }
        if !self.has_policy {
            header.pr_policy = default.pr_policy;
            header.pr_value = default.pr_value;
        }
        Header { association: link.id, ..header }
    }
}

/// `sctp_sndrcvinfo`; a lifetime is a policy of partial reliability (RFC 3758 4.1).
fn sndrcv(reader: Reader<'_>) -> Header {
    let flags = reader.u16(4);
    let value = reader.u32(16);
    let policy = match flags & abi::SCTP_PR_SCTP_PRIO {
        0 if value > 0 => abi::SCTP_PR_SCTP_TTL,
        policy => policy,
    };
    Header {
        stream: reader.u16(0),
        flags,
        ppid: reader.u32(8),
        context: reader.u32(12),
        pr_policy: policy,
        pr_value: value,
        association: reader.i32(28),
        ..Header::new(Kind::Data)
    }
}

/// `sctp_sndinfo`, which leaves the policy of partial reliability as it is.
fn sndinfo(header: &mut Header, reader: Reader<'_>) {
    header.stream = reader.u16(0);
    header.flags = reader.u16(2);
    header.ppid = reader.u32(4);
    header.context = reader.u32(8);
    header.association = reader.i32(12);
}

/// Defaults of an association, or of those to come.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    /// SCTP_DEFAULT_SEND_PARAM, SCTP_DEFAULT_SNDINFO and SCTP_DEFAULT_PRINFO.
    send: Header,
    /// SCTP_CONTEXT.
    pub(crate) context: u32,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { send: Header::new(Kind::Data), context: 0 }
    }
}

/// Whether an option is one of [`Defaults`].
pub(crate) const fn is_default(name: c_int) -> bool {
    matches!(
        name,
        abi::CONTEXT | abi::DEFAULT_SEND_PARAM | abi::DEFAULT_SNDINFO | abi::DEFAULT_PRINFO
    )
}

impl Defaults {
    /// The value of such an option.
    pub(crate) fn get(&self, name: c_int, reader: Reader<'_>) -> Vec<u8> {
        let mut writer = Writer::default();
        let Header { stream, flags, ppid, context, pr_value, pr_policy, .. } = self.send;
        match name {
            abi::CONTEXT => writer.i32(reader.i32(0)).u32(self.context),
            abi::DEFAULT_PRINFO => writer.i32(reader.i32(0)).u32(pr_value).u16(pr_policy).u16(0),
            abi::DEFAULT_SNDINFO => {
                writer.u16(stream).u16(flags).u32(ppid).u32(context).i32(reader.i32(12))
            }
            _ => {
                writer.u16(stream).u16(0).u16(flags).u16(0).u32(ppid).u32(context);
                writer.u32(pr_value).u32(0).u32(0).i32(reader.i32(28))
            }
        };
        writer.done()
    }

    pub(crate) fn set(&mut self, name: c_int, reader: Reader<'_>) -> Errno<()> {
        let mut new = *self;
        match name {
            abi::CONTEXT => new.context = reader.u32(4),
            abi::DEFAULT_PRINFO => {
                let (value, policy) = (reader.u32(4), reader.u16(8));
                if policy & !abi::SCTP_PR_SCTP_PRIO != 0 {
                    return Err(libc::EINVAL);
                }
                new.send.pr_policy = policy;
                new.send.pr_value = if policy == 0 { 0 } else { value };
            }
            abi::DEFAULT_SNDINFO => sndinfo(&mut new.send, reader),
            _ => new.send = sndrcv(reader),
        }
        if name != abi::CONTEXT && new.send.flags & !DEFAULT_FLAGS != 0 {
            return Err(libc::EINVAL);
        }
        *self = new;
        Ok(())
    }
}
