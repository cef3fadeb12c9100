//! The functions of RFC 6458, section 9, which libsctp has for the kernel's SCTP. They consist of
//! calls on sockets.

use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::sockets::{getsockopt, recvmsg, sendmsg, setsockopt};

const IPPROTO_SCTP: c_int = 132;

// Numbers of `linux/sctp.h`.
const SCTP_INITMSG: c_int = 2;
const SCTP_NODELAY: c_int = 3;
const SCTP_AUTOCLOSE: c_int = 4;
const SCTP_ADAPTATION_LAYER: c_int = 7;
const SCTP_DISABLE_FRAGMENTS: c_int = 8;
const SCTP_DEFAULT_SEND_PARAM: c_int = 10;
const SCTP_EVENTS: c_int = 11;
const SCTP_I_WANT_MAPPED_V4_ADDR: c_int = 12;
const SCTP_FRAGMENT_INTERLEAVE: c_int = 18;
const SCTP_PARTIAL_DELIVERY_POINT: c_int = 19;
const SCTP_HMAC_IDENT: c_int = 22;
const SCTP_GET_ASSOC_NUMBER: c_int = 28;
const SCTP_GET_ASSOC_ID_LIST: c_int = 29;
const SCTP_AUTO_ASCONF: c_int = 30;
const SCTP_RECVRCVINFO: c_int = 32;
const SCTP_RECVNXTINFO: c_int = 33;
const SCTP_DEFAULT_SNDINFO: c_int = 34;
const SCTP_REUSE_PORT: c_int = 36;
const SCTP_SOCKOPT_BINDX_ADD: c_int = 100;
const SCTP_SOCKOPT_BINDX_REM: c_int = 101;
const SCTP_SOCKOPT_PEELOFF: c_int = 102;
const SCTP_GET_PEER_ADDRS: c_int = 108;
const SCTP_GET_LOCAL_ADDRS: c_int = 109;
const SCTP_SOCKOPT_CONNECTX3: c_int = 111;
const SCTP_SOCKOPT_PEELOFF_FLAGS: c_int = 122;

// Types of control messages.
const SCTP_SNDRCV: c_int = 1;
const SCTP_SNDINFO: c_int = 2;
const SCTP_RCVINFO: c_int = 3;
const SCTP_NXTINFO: c_int = 4;
const SCTP_PRINFO: c_int = 5;
const SCTP_AUTHINFO: c_int = 6;
const SCTP_DSTADDRV4: c_int = 7;
const SCTP_DSTADDRV6: c_int = 8;

/// Size of `struct sctp_sndrcvinfo`.
const SNDRCVINFO: usize = 32;
/// Size of `struct sctp_sndinfo`.
const SNDINFO: usize = 16;
/// Size of `struct sctp_prinfo`.
const PRINFO: usize = 8;
/// Size of `struct sctp_authinfo`.
const AUTHINFO: usize = 2;
/// Size of `struct sctp_rcvinfo`.
const RCVINFO: usize = 28;
/// Size of `struct sctp_nxtinfo`.
const NXTINFO: usize = 16;
/// Size of `struct sctp_sendv_spa`: flags, then the three structures.
const SENDV_SPA: usize = 32;
/// Size of `struct sctp_getaddrs` up to the addresses.
const GETADDRS: usize = 8;
/// Room for the addresses of an association: those of IPv6 take 28 bytes each.
const MOST_ADDRESSES: usize = 64 * 1024;
/// Room for control messages, which are aligned as u64.
const CONTROL: usize = 128;

/// Sets errno and returns -1.
fn failed(number: c_int) -> c_int {
    polypath_sockets::api::failed(number)
}

/// The size of a socket address of this family.
fn address_size(family: u16) -> Option<usize> {
    match c_int::from(family) {
        libc::AF_INET => Some(size_of::<libc::sockaddr_in>()),
        libc::AF_INET6 => Some(size_of::<libc::sockaddr_in6>()),
        _ => None,
    }
}

/// The size of a packed array of addresses; `None` if one is of another family.
///
/// # Safety
///
/// There are `count` addresses.
unsafe fn packed_size(addresses: *const sockaddr, count: c_int) -> Option<usize> {
    let mut size = 0;
    for _ in 0..count {
        // SAFETY: by the contract of this function, an address begins here, with its family.
        let family = unsafe { addresses.byte_add(size).cast::<u16>().read_unaligned() };
        size += address_size(family)?;
    }
    Some(size)
}

/// The size of the addresses that a program passes, or -1 with errno.
///
/// # Safety
///
/// The pointer is null, or there are `count` addresses.
unsafe fn checked_size(addresses: *const sockaddr, count: c_int) -> Result<usize, c_int> {
    if addresses.is_null() {
        return Err(failed(libc::EFAULT));
    }
    // SAFETY: by the contract of this function.
    match unsafe { packed_size(addresses, count) } {
        Some(size) if size > 0 => Ok(size),
        _ => Err(failed(libc::EINVAL)),
    }
}

/// `sctp_bindx`.
///
/// # Safety
///
/// There are `count` addresses.
#[unsafe(export_name = "polypath_sctp_bindx")]
pub unsafe extern "C-unwind" fn bindx(
    fd: c_int,
    addresses: *mut sockaddr,
    count: c_int,
    flags: c_int,
) -> c_int {
    const ADD: c_int = 1;
    const REMOVE: c_int = 2;
    let option = match flags {
        ADD => SCTP_SOCKOPT_BINDX_ADD,
        REMOVE => SCTP_SOCKOPT_BINDX_REM,
        _ => return failed(libc::EINVAL),
    };
    // SAFETY: by the contract of this function.
    unsafe {
        match checked_size(addresses, count) {
            Ok(size) => setsockopt(fd, IPPROTO_SCTP, option, addresses.cast(), size as socklen_t),
            Err(result) => result,
        }
    }
}

/// `struct sctp_getaddrs_old`.
#[repr(C)]
struct Connectx {
    association: i32,
    size: c_int,
    addresses: *mut sockaddr,
}

/// `sctp_connectx`.
///
/// # Safety
///
/// There are `count` addresses; the id is null or writable.
#[unsafe(export_name = "polypath_sctp_connectx")]
pub unsafe extern "C-unwind" fn connectx(
    fd: c_int,
    addresses: *mut sockaddr,
    count: c_int,
    id: *mut i32,
) -> c_int {
    // SAFETY: by the contract of this function; the structure lives during the call.
    unsafe {
        if !id.is_null() {
            id.write(0);
        }
        let size = match checked_size(addresses, count) {
            Ok(size) => size as c_int,
            Err(result) => return result,
        };
        let mut request = Connectx { association: 0, size, addresses };
        let mut length = size_of::<Connectx>() as socklen_t;
        let value = (&raw mut request).cast();
        let result = getsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX3, value, &raw mut length);
        let started = result == 0 || *libc::__errno_location() == libc::EINPROGRESS;
        if started && !id.is_null() {
            id.write(request.association);
        }
        result
    }
}

/// `sctp_peeloff`.
#[unsafe(export_name = "polypath_sctp_peeloff")]
pub extern "C-unwind" fn peeloff(fd: c_int, id: i32) -> c_int {
    let mut request = [id, 0];
    peeled(fd, SCTP_SOCKOPT_PEELOFF, &mut request)
}

/// `sctp_peeloff_flags`.
#[unsafe(export_name = "polypath_sctp_peeloff_flags")]
pub extern "C-unwind" fn peeloff_flags(fd: c_int, id: i32, flags: c_uint) -> c_int {
    let mut request = [id, 0, flags.cast_signed()];
    peeled(fd, SCTP_SOCKOPT_PEELOFF_FLAGS, &mut request)
}

fn peeled(fd: c_int, option: c_int, request: &mut [i32]) -> c_int {
    let mut length = size_of_val(request) as socklen_t;
    let value = request.as_mut_ptr().cast();
    // SAFETY: the value lives during the call and has this length.
    let result = unsafe { getsockopt(fd, IPPROTO_SCTP, option, value, &raw mut length) };
    if result < 0 { result } else { request[1] }
}

/// `sctp_opt_info`. libsctp refuses some options; this function passes all of them on.
///
/// # Safety
///
/// The pointers are valid, as for getsockopt(2).
#[unsafe(export_name = "polypath_sctp_opt_info")]
pub unsafe extern "C-unwind" fn opt_info(
    fd: c_int,
    id: i32,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if value.is_null() || length.is_null() {
        return failed(libc::EINVAL);
    }
    // Where the option has the id of the association.
    let at = match option {
        SCTP_INITMSG
        | SCTP_NODELAY
        | SCTP_AUTOCLOSE
        | SCTP_ADAPTATION_LAYER
        | SCTP_DISABLE_FRAGMENTS
        | SCTP_EVENTS
        | SCTP_I_WANT_MAPPED_V4_ADDR
        | SCTP_FRAGMENT_INTERLEAVE
        | SCTP_PARTIAL_DELIVERY_POINT
        | SCTP_HMAC_IDENT
        | SCTP_GET_ASSOC_NUMBER
        | SCTP_GET_ASSOC_ID_LIST
        | SCTP_AUTO_ASCONF
        | SCTP_RECVRCVINFO
        | SCTP_RECVNXTINFO
        | SCTP_REUSE_PORT => None,
        SCTP_DEFAULT_SEND_PARAM => Some(SNDRCVINFO - 4),
        SCTP_DEFAULT_SNDINFO => Some(SNDINFO - 4),
        _ => Some(0),
    };
    // SAFETY: by the contract of this function; nothing is written beyond the length.
    unsafe {
        if let Some(at) = at
            && at + size_of::<i32>() <= *length as usize
        {
            value.byte_add(at).cast::<i32>().write_unaligned(id);
        }
        getsockopt(fd, IPPROTO_SCTP, option, value, length)
    }
}

/// `sctp_getpaddrs`.
///
/// # Safety
///
/// The pointer is null or writable.
#[unsafe(export_name = "polypath_sctp_getpaddrs")]
pub unsafe extern "C-unwind" fn getpaddrs(
    fd: c_int,
    id: i32,
    addresses: *mut *mut sockaddr,
) -> c_int {
    // SAFETY: by the contract of this function.
    unsafe { addresses_of(fd, id, SCTP_GET_PEER_ADDRS, addresses) }
}

/// `sctp_getladdrs`.
///
/// # Safety
///
/// The pointer is null or writable.
#[unsafe(export_name = "polypath_sctp_getladdrs")]
pub unsafe extern "C-unwind" fn getladdrs(
    fd: c_int,
    id: i32,
    addresses: *mut *mut sockaddr,
) -> c_int {
    // SAFETY: by the contract of this function.
    unsafe { addresses_of(fd, id, SCTP_GET_LOCAL_ADDRS, addresses) }
}

/// The addresses that an option returns, in memory that the program frees, and their number.
///
/// # Safety
///
/// The pointer is null or writable.
unsafe fn addresses_of(fd: c_int, id: i32, option: c_int, addresses: *mut *mut sockaddr) -> c_int {
    if addresses.is_null() {
        return failed(libc::EFAULT);
    }
    // SAFETY: the block has room for the id, the number and the addresses, and is freed if it is
    // not given away; the pointer is writable by the contract of this function.
    unsafe {
        let block = libc::calloc(1, GETADDRS + MOST_ADDRESSES);
        if block.is_null() {
            return failed(libc::ENOMEM);
        }
        block.cast::<i32>().write(id);
        let mut length = (GETADDRS + MOST_ADDRESSES) as socklen_t;
        let result = getsockopt(fd, IPPROTO_SCTP, option, block, &raw mut length);
        if result < 0 {
            let number = *libc::__errno_location();
            libc::free(block);
            return failed(number);
        }
        let count = block.byte_add(size_of::<i32>()).cast::<u32>().read();
        let shrunk = libc::realloc(block, GETADDRS.max(length as usize));
        let block = if shrunk.is_null() { block } else { shrunk };
        addresses.write(block.byte_add(GETADDRS).cast());
        count.cast_signed()
    }
}

/// `sctp_freepaddrs`.
///
/// # Safety
///
/// The pointer is null or from `polypath_sctp_getpaddrs`, and not freed yet.
#[unsafe(export_name = "polypath_sctp_freepaddrs")]
pub unsafe extern "C" fn freepaddrs(addresses: *mut sockaddr) -> c_int {
    if addresses.is_null() {
        return failed(libc::EFAULT);
    }
    // SAFETY: the block begins before the addresses, see `addresses_of`.
    unsafe { libc::free(addresses.byte_sub(GETADDRS).cast()) };
    0
}

/// `sctp_freeladdrs`.
///
/// # Safety
///
/// The pointer is null or from `polypath_sctp_getladdrs`, and not freed yet.
#[unsafe(export_name = "polypath_sctp_freeladdrs")]
pub unsafe extern "C" fn freeladdrs(addresses: *mut sockaddr) -> c_int {
    // SAFETY: by the contract of this function.
    unsafe { freepaddrs(addresses) }
}

/// `sctp_getaddrlen`.
#[unsafe(export_name = "polypath_sctp_getaddrlen")]
pub extern "C" fn getaddrlen(family: libc::sa_family_t) -> c_int {
    address_size(family).map_or_else(|| failed(libc::EINVAL), |size| size as c_int)
}

/// Control messages that are written one after the other.
struct Control {
    /// u64 aligns them.
    room: [u64; CONTROL / 8],
    used: usize,
}

impl Control {
    const fn new() -> Self {
        Self { room: [0; CONTROL / 8], used: 0 }
    }

    /// Adds a control message; false if there is no room.
    ///
    /// # Safety
    ///
    /// `data` points to `size` readable bytes.
    #[must_use]
    unsafe fn add(&mut self, kind: c_int, data: *const c_void, size: usize) -> bool {
        // SAFETY: the macros only compute sizes.
        let (space, length) =
            unsafe { (libc::CMSG_SPACE(size as u32) as usize, libc::CMSG_LEN(size as u32)) };
        if self.used + space > CONTROL {
            return false;
        }
        // SAFETY: there is room for the header and the data, and `used` is a multiple of the
        // alignment, because CMSG_SPACE is.
        unsafe {
            let header = self.room.as_mut_ptr().byte_add(self.used).cast::<libc::cmsghdr>();
            (*header).cmsg_level = IPPROTO_SCTP;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = length as _;
            std::ptr::copy_nonoverlapping(data.cast::<u8>(), libc::CMSG_DATA(header), size);
        }
        self.used += space;
        true
    }

    /// Sends a message with these control messages.
    ///
    /// # Safety
    ///
    /// The parts and the address are valid, as for sendmsg(2).
    unsafe fn send(
        &mut self,
        fd: c_int,
        parts: *const iovec,
        count: usize,
        to: (*mut sockaddr, socklen_t),
        flags: c_int,
    ) -> ssize_t {
        // SAFETY: all-zero bytes are a valid `msghdr`, and by the contract of this function.
        unsafe {
            let mut message: msghdr = std::mem::zeroed();
            message.msg_iov = parts.cast_mut();
            message.msg_iovlen = count as _;
            if !to.0.is_null() {
                message.msg_name = to.0.cast();
                message.msg_namelen = to.1;
            }
            if self.used > 0 {
                message.msg_control = self.room.as_mut_ptr().cast();
                message.msg_controllen = self.used as _;
            }
            sendmsg(fd, &raw const message, flags)
        }
    }
}

/// `struct sctp_sndrcvinfo`.
#[repr(C)]
#[derive(Default)]
struct SndRcvInfo {
    stream: u16,
    ssn: u16,
    flags: u16,
    ppid: u32,
    context: u32,
    timetolive: u32,
    tsn: u32,
    cumtsn: u32,
    association: i32,
}

const _: () = assert!(size_of::<SndRcvInfo>() == SNDRCVINFO);

/// `sctp_sendmsg`.
///
/// # Safety
///
/// The buffer and the address are valid for their lengths.
#[unsafe(export_name = "polypath_sctp_sendmsg")]
pub unsafe extern "C-unwind" fn sctp_sendmsg(
    fd: c_int,
    buffer: *const c_void,
    size: size_t,
    to: *mut sockaddr,
    to_length: socklen_t,
    ppid: u32,
    flags: u32,
    stream: u16,
    timetolive: u32,
    context: u32,
) -> c_int {
    // RFC 6458 has no flag above 16 bits.
    let Ok(flags) = u16::try_from(flags) else { return failed(libc::EINVAL) };
    let info = SndRcvInfo { stream, flags, ppid, context, timetolive, ..SndRcvInfo::default() };
    let part = iovec { iov_base: buffer.cast_mut(), iov_len: size };
    let mut control = Control::new();
    // SAFETY: the structure has this size, and by the contract of this function.
    unsafe {
        let added = control.add(SCTP_SNDRCV, (&raw const info).cast(), SNDRCVINFO);
        debug_assert!(added, "one control message has room");
        control.send(fd, &raw const part, 1, (to, to_length), 0) as c_int
    }
}

/// `sctp_send`.
///
/// # Safety
///
/// The buffer is valid for its length; the structure is null or valid.
#[unsafe(export_name = "polypath_sctp_send")]
pub unsafe extern "C-unwind" fn sctp_send(
    fd: c_int,
    buffer: *const c_void,
    size: size_t,
    info: *const c_void,
    flags: c_int,
) -> c_int {
    let part = iovec { iov_base: buffer.cast_mut(), iov_len: size };
    let mut control = Control::new();
    // SAFETY: by the contract of this function.
    unsafe {
        let added = info.is_null() || control.add(SCTP_SNDRCV, info, SNDRCVINFO);
        debug_assert!(added, "one control message has room");
        control.send(fd, &raw const part, 1, (std::ptr::null_mut(), 0), flags) as c_int
    }
}

/// `sctp_sendv`.
///
/// # Safety
///
/// The parts are valid, there are `addresses` addresses, and `info` has the type of `kind`.
#[unsafe(export_name = "polypath_sctp_sendv")]
pub unsafe extern "C-unwind" fn sctp_sendv(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    to: *mut sockaddr,
    addresses: c_int,
    info: *const c_void,
    info_length: socklen_t,
    kind: c_uint,
    flags: c_int,
) -> c_int {
    let (Ok(count), true) = (usize::try_from(count), addresses >= 0) else {
        return failed(libc::EINVAL);
    };
    let mut control = Control::new();
    // SAFETY: by the contract of this function.
    unsafe {
        if !add_info(&mut control, info, info_length as usize, kind) {
            return failed(libc::EINVAL);
        }
        if to.is_null() || addresses == 0 {
            return control.send(fd, parts, count, (std::ptr::null_mut(), 0), flags) as c_int;
        }
        let mut at = 0;
        let mut first = 0;
        for number in 0..addresses {
            let address = to.byte_add(at);
            let Some(size) = address_size(address.cast::<u16>().read_unaligned()) else {
                return failed(libc::EINVAL);
            };
            // Further addresses of the peer are control messages.
            let added = match size {
                _ if number == 0 => {
                    first = size;
                    true
                }
                16 => control.add(SCTP_DSTADDRV4, address.byte_add(4).cast(), 4),
                _ => control.add(SCTP_DSTADDRV6, address.byte_add(8).cast(), 16),
            };
            if !added {
                return failed(libc::EINVAL);
            }
            at += size;
        }
        control.send(fd, parts, count, (to, first as socklen_t), flags) as c_int
    }
}

/// Adds the control messages with the content of `info`; false if the type or the length is wrong.
///
/// # Safety
///
/// `info` is null or points to `length` readable bytes.
unsafe fn add_info(
    control: &mut Control,
    info: *const c_void,
    length: usize,
    kind: c_uint,
) -> bool {
    /// `SCTP_SENDV_NOINFO` and so on: the type of the control message, and its size.
    const KINDS: [(c_int, usize); 3] =
        [(SCTP_SNDINFO, SNDINFO), (SCTP_PRINFO, PRINFO), (SCTP_AUTHINFO, AUTHINFO)];
    const SPA: c_uint = 4;
    // SAFETY: by the contract of this function; the lengths are checked.
    unsafe {
        match kind {
            0 => info.is_null() || length == 0,
            1..=3 => {
                let (kind, size) = KINDS[kind as usize - 1];
                !info.is_null() && length >= size && control.add(kind, info, size)
            }
            SPA if !info.is_null() && length >= SENDV_SPA => {
                let valid = info.cast::<u32>().read_unaligned();
                let mut at = size_of::<u32>();
                KINDS.iter().enumerate().all(|(bit, (kind, size))| {
                    let data = info.byte_add(at);
                    at += size;
                    valid >> bit & 1 == 0 || control.add(*kind, data, *size)
                })
            }
            _ => false,
        }
    }
}

/// Receives a message, and passes its control messages of SCTP to `each`.
///
/// # Safety
///
/// The parts are valid, and the other pointers are null or valid, as for recvmsg(2).
unsafe fn receive(
    fd: c_int,
    parts: *const iovec,
    count: usize,
    from: (*mut sockaddr, *mut socklen_t),
    flags: *mut c_int,
    mut each: impl FnMut(c_int, *const u8, usize),
) -> c_int {
    let mut room = [0u64; CONTROL / 8];
    // SAFETY: all-zero bytes are a valid `msghdr`; the macros stay within the control messages that
    // the call has written; and by the contract of this function.
    unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = parts.cast_mut();
        message.msg_iovlen = count as _;
        if !from.0.is_null() && !from.1.is_null() {
            message.msg_name = from.0.cast();
            message.msg_namelen = *from.1;
        }
        message.msg_control = room.as_mut_ptr().cast();
        message.msg_controllen = CONTROL as _;
        let size = recvmsg(fd, &raw mut message, if flags.is_null() { 0 } else { *flags });
        if size < 0 {
            return -1;
        }
        if !from.1.is_null() {
            *from.1 = message.msg_namelen;
        }
        if !flags.is_null() {
            *flags = message.msg_flags;
        }
        let mut next = libc::CMSG_FIRSTHDR(&raw const message);
        while !next.is_null() {
            let length = ((*next).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            if (*next).cmsg_level == IPPROTO_SCTP {
                each((*next).cmsg_type, libc::CMSG_DATA(next), length);
            }
            next = libc::CMSG_NXTHDR(&raw const message, next);
        }
        size as c_int
    }
}

/// `sctp_recvmsg`.
///
/// # Safety
///
/// The buffer is valid for its length; the other pointers are null or valid.
#[unsafe(export_name = "polypath_sctp_recvmsg")]
pub unsafe extern "C-unwind" fn sctp_recvmsg(
    fd: c_int,
    buffer: *mut c_void,
    size: size_t,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
    info: *mut c_void,
    flags: *mut c_int,
) -> c_int {
    let part = iovec { iov_base: buffer, iov_len: size };
    // SAFETY: by the contract of this function.
    unsafe {
        receive(fd, &raw const part, 1, (from, from_length), flags, |kind, data, length| {
            if kind == SCTP_SNDRCV && length >= SNDRCVINFO && !info.is_null() {
                std::ptr::copy_nonoverlapping(data, info.cast(), SNDRCVINFO);
            }
        })
    }
}

/// `sctp_recvv`.
///
/// # Safety
///
/// The parts are valid; the other pointers are null or valid, and `info` has `info_length` bytes.
#[unsafe(export_name = "polypath_sctp_recvv")]
pub unsafe extern "C-unwind" fn sctp_recvv(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
    info: *mut c_void,
    info_length: *mut socklen_t,
    kind: *mut c_uint,
    flags: *mut c_int,
) -> c_int {
    // `SCTP_RECVV_NOINFO` and so on, by the control messages that have arrived.
    const NEITHER: c_uint = 0;
    const RECEIVED: c_uint = 1;
    const NEXT: c_uint = 2;
    const BOTH: c_uint = 3;
    let Ok(count) = usize::try_from(count) else { return failed(libc::EINVAL) };
    let mut received: Option<[u8; RCVINFO]> = None;
    let mut next: Option<[u8; NXTINFO]> = None;
    // SAFETY: by the contract of this function; no more than the length is written.
    unsafe {
        let size = receive(fd, parts, count, (from, from_length), flags, |kind, data, length| {
            if kind == SCTP_RCVINFO && length >= RCVINFO {
                received = Some(data.cast::<[u8; RCVINFO]>().read());
            } else if kind == SCTP_NXTINFO && length >= NXTINFO {
                next = Some(data.cast::<[u8; NXTINFO]>().read());
            }
        });
        if size < 0 {
            return size;
        }
        let room = if info.is_null() || info_length.is_null() { 0 } else { *info_length as usize };
        let write = |at: usize, bytes: &[u8]| {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), info.cast::<u8>().add(at), bytes.len());
        };
        let (found, used) = match (received, next) {
            (Some(received), Some(next)) if room >= RCVINFO + NXTINFO => {
                write(0, &received);
                write(RCVINFO, &next);
                (BOTH, RCVINFO + NXTINFO)
            }
            (Some(received), _) if room >= RCVINFO => {
                write(0, &received);
                (RECEIVED, RCVINFO)
            }
            (None, Some(next)) if room >= NXTINFO => {
                write(0, &next);
                (NEXT, NXTINFO)
            }
            _ => (NEITHER, 0),
        };
        if !info_length.is_null() {
            *info_length = used as socklen_t;
        }
        if !kind.is_null() {
            *kind = found;
        }
        size
    }
}
