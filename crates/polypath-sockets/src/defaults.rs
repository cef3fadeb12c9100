//! The defaults of the messages that an association sends (RFC 6458 8.1.13, 8.1.14), and what they
//! are set by.

use std::ffi::c_int;

use crate::abi;
use crate::bytes::{Reader, Writer};
use crate::errno::Errno;
use crate::frame::{Header, Kind};

/// Flags of messages that programs can set as a default.
pub(crate) const FLAGS: u16 =
    abi::SCTP_UNORDERED | abi::SCTP_ADDR_OVER | abi::SCTP_ABORT | abi::SCTP_EOF;

/// `sctp_sndrcvinfo`; a lifetime is a policy of partial reliability (RFC 3758 4.1).
pub(crate) fn sndrcv(reader: Reader<'_>) -> Header {
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
pub(crate) fn sndinfo(header: &mut Header, reader: Reader<'_>) {
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
    pub(crate) send: Header,
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
        if name != abi::CONTEXT && new.send.flags & !FLAGS != 0 {
            return Err(libc::EINVAL);
        }
        *self = new;
        Ok(())
    }
}
