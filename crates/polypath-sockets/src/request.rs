//! What a call that sends requests: its control messages (RFC 6458 5.3), or else the defaults of
//! the association (RFC 6458 8.1.13, 8.1.14).

use std::ffi::c_int;
use std::net::IpAddr;

use libc::{cmsghdr, msghdr};

use crate::bytes::Reader;
use crate::defaults::{FLAGS as DEFAULT_FLAGS, sndinfo, sndrcv};
use crate::errno::Errno;
use crate::frame::{Header, Kind};
use crate::link::{Link, lock};
use crate::socket::Sock;
use crate::{abi, memory, report, security};

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
        memory::check(message.msg_control, message.msg_controllen)?;
        // SAFETY: by the contract of this function; the macros stay within the control buffer.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(message);
            while !next.is_null() {
                let cmsghdr { cmsg_len, cmsg_level, cmsg_type, .. } = *next;
                let length = cmsg_len.checked_sub(libc::CMSG_LEN(0) as usize);
                let used = next.addr() - message.msg_control.addr();
                // It ends in the buffer.
                let length = length.filter(|_| cmsg_len <= message.msg_controllen - used);
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
