//! Socket options (RFC 6458 8), with Linux's structures and numbers.

use std::ffi::{CString, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use polypath::{AddressError, Extension, ReconfigError, StreamId, StreamReset};

use crate::bytes::{Reader, Writer};
use crate::errno::Errno;
use crate::link::{Link, Phase, accepted_requests, lock};
use crate::lookup::{path, primary};
use crate::parameters::{self, is_present};
use crate::socket::{Sock, is_nonblocking};
use crate::values::{self, Options};
use crate::{abi, address, calls, defaults, many, real, report, rules, security, status};

/// The value of an SCTP option. `request` is what the program's buffer holds: some options have
/// input.
pub(crate) fn get(fd: c_int, sock: &Sock, name: c_int, request: &[u8]) -> Errno<Vec<u8>> {
    rules::check_get(sock, name, request)?;
    let options = *lock(&sock.options);
    let reader = Reader(request);
    let value = match name {
        abi::RTOINFO
        | abi::ASSOCINFO
        | abi::PEER_ADDR_PARAMS
        | abi::DELAYED_SACK
        | abi::MAX_BURST
        | abi::PEER_ADDR_THLDS
        | abi::PEER_ADDR_THLDS_V2 => parameters::get(sock, name, &options, request),
        abi::STATUS
        | abi::GET_PEER_ADDR_INFO
        | abi::PRIMARY_ADDR
        | abi::GET_PEER_ADDRS
        | abi::GET_LOCAL_ADDRS
        | abi::GET_ASSOC_STATS
        | abi::PR_ASSOC_STATUS
        | abi::PR_STREAM_STATUS => status::get(sock, name, request),
        abi::HMAC_IDENT | abi::AUTH_ACTIVE_KEY | abi::PEER_AUTH_CHUNKS | abi::LOCAL_AUTH_CHUNKS => {
            security::get(sock, name, &options, reader.i32(0))
        }
        abi::GET_ASSOC_NUMBER | abi::GET_ASSOC_ID_LIST | abi::PEELOFF | abi::PEELOFF_FLAGS => {
            of_many(fd, sock, name, reader)
        }
        abi::MAXSEG => max_segment(sock, request),
        name if defaults::is_default(name) => {
            let link = link(sock, name, request)?;
            let value = lock(&link.defaults).get(name, reader);
            Ok(value)
        }
        other => stored(sock, other, &options, reader),
    }?;
    // Programs built with older headers know fewer types and fields.
    let least = match name {
        abi::EVENTS => 1,
        abi::GET_ASSOC_STATS => 4,
        _ => value.len(),
    };
    if request.len() < least { Err(libc::EINVAL) } else { Ok(value) }
}

/// The value of an option that the socket stores.
fn stored(sock: &Sock, name: c_int, options: &Options, reader: Reader<'_>) -> Errno<Vec<u8>> {
    let mut writer = Writer::default();
    let id = reader.i32(0);
    // Of an association: whether both sides have offered it.
    let present = is_present(sock, id).unwrap_or(false) && sock.is_local();
    let agreed = if present { sock.association(id).ok() } else { None };
    let supported = |extension: Extension, wanted: bool| {
        let on = agreed.as_ref().map_or(wanted, |both| both.has_agreed_on(extension));
        Ok(assoc_value(id, on.into()))
    };
    let config = || parameters::config(options);
    match name {
        abi::INITMSG => {
            for value in options.init {
                writer.u16(value);
            }
            Ok(writer.done())
        }
        abi::NODELAY => Ok(integer(options.nodelay.into())),
        abi::I_WANT_MAPPED_V4_ADDR => Ok(integer(options.mapped.into())),
        abi::RECVRCVINFO => Ok(integer(options.recvrcvinfo.into())),
        abi::AUTO_ASCONF => Ok(integer(options.auto_asconf.into())),
        abi::DISABLE_FRAGMENTS => Ok(integer(options.no_fragments.into())),
        abi::FRAGMENT_INTERLEAVE => Ok(integer(options.interleave as i32)),
        abi::REUSE_PORT => Ok(integer(options.reuse_port.into())),
        abi::RECVNXTINFO => Ok(integer(options.recvnxtinfo.into())),
        abi::PARTIAL_DELIVERY_POINT => Ok(integer(0)),
        abi::EXPOSE_PF_STATE => {
            let link = if is_present(sock, id)? { sock.member(id)? } else { sock.link.clone() };
            Ok(assoc_value(id, link.expose_pf.load(Ordering::Acquire)))
        }
        abi::ADAPTATION_LAYER => Ok(integer(config()?.adaptation_layer().unwrap_or(0) as i32)),
        abi::AUTOCLOSE => {
            let many = sock.many.as_ref().ok_or(libc::EOPNOTSUPP)?;
            Ok(integer(many.autoclose.load(Ordering::Acquire) as i32))
        }
        abi::PR_SUPPORTED => {
            let interleaves =
                agreed.as_ref().is_some_and(|both| both.has_agreed_on(Extension::Interleaving));
            let extension = match interleaves {
                true => Extension::InterleavedForwardTsn,
                false => Extension::PartialReliability,
            };
            supported(extension, options.partial_reliability)
        }
        abi::RECONFIG_SUPPORTED => {
            supported(Extension::StreamReconfiguration, config()?.stream_reconfiguration())
        }
        abi::INTERLEAVING_SUPPORTED => supported(Extension::Interleaving, config()?.interleaving()),
        abi::ASCONF_SUPPORTED => {
            supported(Extension::DynamicAddresses, config()?.dynamic_addresses())
        }
        abi::AUTH_SUPPORTED => supported(Extension::Authentication, config()?.authentication()),
        abi::ECN_SUPPORTED => supported(Extension::Ecn, config()?.ecn()),
        abi::ENABLE_STREAM_RESET => {
            let link = if is_present(sock, id)? { sock.member(id)? } else { sock.link.clone() };
            Ok(assoc_value(id, link.accepted()))
        }
        abi::STREAM_SCHEDULER_VALUE => {
            let (association, stream) = (sock.association(id)?, reader.u16(4));
            if stream >= association.streams().0 {
                return Err(libc::EINVAL);
            }
            let value = association.stream_value(StreamId(stream));
            Ok(writer.i32(id).u16(stream).u16(value).done())
        }
        abi::STREAM_SCHEDULER => Ok(assoc_value(id, options.scheduler.unwrap_or(0))),
        abi::EVENTS => {
            let events = sock.link.events.load(Ordering::Acquire);
            Ok((0..abi::EVENT_TYPES).map(|bit| (events >> bit & 1) as u8).collect())
        }
        abi::EVENT => {
            let link = if is_present(sock, id)? { sock.member(id)? } else { sock.link.clone() };
            let on = link.events.load(Ordering::Acquire) >> event_bit(reader.u16(4))? & 1;
            Ok(writer.i32(id).u16(reader.u16(4)).u8(on as u8).u8(0).done())
        }
        other => {
            report::missed(format!("getsockopt {}", abi::name(other)));
            Err(unknown(other))
        }
    }
}

/// Options of one-to-many sockets.
fn of_many(fd: c_int, sock: &Sock, name: c_int, reader: Reader<'_>) -> Errno<Vec<u8>> {
    let mut writer = Writer::default();
    if name == abi::PEELOFF || name == abi::PEELOFF_FLAGS {
        let flags = if name == abi::PEELOFF { 0 } else { reader.i32(8) };
        let new = many::peel_off(fd, sock, reader.i32(0), flags)?;
        writer.i32(reader.i32(0)).i32(new);
        if name == abi::PEELOFF_FLAGS {
            writer.i32(flags);
        }
        return Ok(writer.done());
    }
    let links = sock.many.as_ref().ok_or(libc::EOPNOTSUPP)?.opened();
    writer.u32(links.len() as u32);
    if name == abi::GET_ASSOC_ID_LIST {
        for link in links {
            writer.i32(link.id);
        }
    }
    Ok(writer.done())
}

/// Sets an SCTP option.
pub(crate) fn set(fd: c_int, sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    // Nothing to change, for whichever association.
    if name == abi::DELAYED_SACK && value.len() == 12 && value[4..].iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    let Some(several) = rules::check_set(sock, name, value)? else {
        return change(fd, sock, name, value);
    };
    let future = (several == rules::ALL).then_some(rules::FUTURE);
    let present = sock.many.iter().flat_map(|many| many.all()).map(|link| link.id);
    for id in future.into_iter().chain(present) {
        change(fd, sock, name, &rules::with_id(name, value, id))?;
    }
    Ok(())
}

/// Sets an SCTP option for future associations, or for a present one. A value that the core does
/// not accept together with the others is refused now, not by connect.
fn change(fd: c_int, sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    let before = *lock(&sock.options);
    apply(fd, sock, name, value)?;
    let after = *lock(&sock.options);
    if parameters::config(&after).is_err() {
        *lock(&sock.options) = before;
        report::missed(format!("setsockopt {} with this value", abi::name(name)));
        return Err(libc::EOPNOTSUPP);
    }
    Ok(())
}

fn apply(fd: c_int, sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    match name {
        abi::RTOINFO
        | abi::ASSOCINFO
        | abi::PEER_ADDR_PARAMS
        | abi::DELAYED_SACK
        | abi::MAX_BURST
        | abi::PEER_ADDR_THLDS
        | abi::PEER_ADDR_THLDS_V2 => parameters::set(sock, name, value),
        abi::AUTH_CHUNK
        | abi::HMAC_IDENT
        | abi::AUTH_KEY
        | abi::AUTH_ACTIVE_KEY
        | abi::AUTH_DEACTIVATE_KEY
        | abi::AUTH_DELETE_KEY => security::set(sock, name, value),
        abi::MAXSEG => set_max_segment(sock, value),
        abi::EXPOSE_PF_STATE => expose(sock, Reader(value)),
        abi::PRIMARY_ADDR
        | abi::SET_PEER_PRIMARY_ADDR
        | abi::ENABLE_STREAM_RESET
        | abi::RESET_STREAMS
        | abi::RESET_ASSOC
        | abi::ADD_STREAMS
        | abi::STREAM_SCHEDULER
        | abi::STREAM_SCHEDULER_VALUE => request(sock, name, value),
        abi::EVENTS | abi::EVENT => subscribe(sock, name, value),
        abi::BINDX_ADD | abi::BINDX_REM => {
            calls::bindx(sock, &address::parse_packed(value)?, name == abi::BINDX_ADD)
        }
        abi::CONNECTX => {
            let peers = address::parse_packed(value)?;
            calls::connect_to(fd, sock, &peers, is_nonblocking(fd, 0))
        }
        name if defaults::is_default(name) => {
            let link = link(sock, name, value)?;
            lock(&link.defaults).set(name, Reader(value))
        }
        _ => store(sock, name, value),
    }
}

/// The association's id and the value of SCTP_MAXSEG, which may be a plain integer.
fn segment(value: &[u8]) -> (i32, u32) {
    let reader = Reader(value);
    if value.len() < 8 { (rules::FUTURE, reader.u32(0)) } else { (reader.i32(0), reader.u32(4)) }
}

/// SCTP_MAXSEG: of an association, the payload of a DATA chunk that the path MTU allows, too.
fn max_segment(sock: &Sock, request: &[u8]) -> Errno<Vec<u8>> {
    let (id, _) = segment(request);
    let present = is_present(sock, id)?;
    let link = if present { sock.member(id)? } else { sock.link.clone() };
    let size = match link.association().filter(|_| present) {
        Some(association) => link.largest_payload(primary(&association)?.view.max_chunk),
        None => link.max_segment().unwrap_or(0),
    };
    Ok(if request.len() < 8 { integer(size as i32) } else { assoc_value(id, size) })
}

fn set_max_segment(sock: &Sock, value: &[u8]) -> Errno<()> {
    let (id, size) = segment(value);
    // What Linux allows: a packet of 512 bytes, and the length of a chunk.
    let least = if sock.family == libc::AF_INET { 464 } else { 444 };
    if size != 0 && !(least..=65_516).contains(&size) {
        return Err(libc::EINVAL);
    }
    let link = if is_present(sock, id)? { sock.member(id)? } else { sock.link.clone() };
    link.max_segment.store(size, Ordering::Release);
    if let Some(association) = link.association() {
        association.set_max_fragment(link.max_segment());
    }
    Ok(())
}

/// SCTP_EXPOSE_POTENTIALLY_FAILED_STATE (RFC 7829 7.3).
fn expose(sock: &Sock, reader: Reader<'_>) -> Errno<()> {
    let (id, value) = (reader.i32(0), reader.u32(4));
    if value > abi::EXPOSE_PF {
        return Err(libc::EINVAL);
    }
    let link = if is_present(sock, id)? { sock.member(id)? } else { sock.link.clone() };
    link.expose_pf.store(value, Ordering::Release);
    Ok(())
}

/// The association that an option names, or the socket, which has the values of those to come.
fn link(sock: &Sock, name: c_int, value: &[u8]) -> Errno<Arc<Link>> {
    match rules::id(name, value) {
        rules::FUTURE => Ok(sock.link.clone()),
        id => sock.member(id),
    }
}

/// Sets an option that the socket stores.
fn store(sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    let reader = Reader(value);
    let on = reader.i32(0) != 0;
    // `sctp_assoc_value`.
    let offered = reader.u32(4) != 0;
    let mut options = lock(&sock.options);
    match name {
        abi::INITMSG => options.change_init([0, 2, 4, 6].map(|offset| reader.u16(offset))),
        abi::NODELAY => options.nodelay = on,
        abi::RECVRCVINFO => options.recvrcvinfo = on,
        abi::I_WANT_MAPPED_V4_ADDR => {
            options.mapped = on;
            let members = sock.many.as_ref().map(|many| many.all()).unwrap_or_default();
            members.iter().chain([&sock.link]).for_each(|link| link.set_mapped(on));
        }
        abi::RECVNXTINFO => options.recvnxtinfo = on,
        abi::DISABLE_FRAGMENTS => options.no_fragments = on,
        abi::FRAGMENT_INTERLEAVE => options.interleave = on.into(),
        abi::AUTO_ASCONF => options.auto_asconf = on,
        // What is off anyway.
        abi::PARTIAL_DELIVERY_POINT if !on => {}
        abi::REUSE_PORT => options.reuse_port = on,
        abi::ADAPTATION_LAYER => options.adaptation = Some(reader.u32(0)),
        abi::AUTOCLOSE => {
            let many = sock.many.as_ref().ok_or(libc::EOPNOTSUPP)?;
            many.autoclose.store(reader.u32(0), Ordering::Release);
        }
        abi::PR_SUPPORTED => options.partial_reliability = offered,
        abi::RECONFIG_SUPPORTED => options.reconfiguration = Some(offered),
        abi::INTERLEAVING_SUPPORTED if options.interleave == 0 => return Err(libc::EPERM),
        abi::INTERLEAVING_SUPPORTED => options.interleaving = Some(offered),
        abi::ASCONF_SUPPORTED => options.asconf = Some(offered),
        abi::AUTH_SUPPORTED => options.authentication = Some(offered),
        abi::ECN_SUPPORTED => options.ecn = Some(offered),
        other => {
            report::missed(format!("setsockopt {}", abi::name(other)));
            return Err(unknown(other));
        }
    }
    Ok(())
}

/// SCTP_EVENTS and SCTP_EVENT.
fn subscribe(sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    let reader = Reader(value);
    let members = || sock.many.iter().flat_map(|many| many.all());
    if name == abi::EVENTS {
        let types = value.iter().take(abi::EVENT_TYPES).enumerate();
        let events = types.map(|(at, byte)| u32::from(*byte != 0) << at).sum();
        for link in members().chain([sock.link.clone()]) {
            link.events.store(events, Ordering::Release);
            if link.wants(abi::SENDER_DRY_EVENT) {
                link.awaits_dry.notify_one();
            }
        }
        return Ok(());
    }
    let (id, bit, on) = (reader.i32(0), 1 << event_bit(reader.u16(4))?, reader.u8(6) != 0);
    let links = match (&sock.many, id) {
        (None, _) | (_, 0) => vec![sock.link.clone()],
        (_, rules::CURRENT) => members().collect(),
        (_, rules::ALL) => members().chain([sock.link.clone()]).collect(),
        _ => vec![sock.member(id)?],
    };
    for link in links {
        if on {
            link.events.fetch_or(bit, Ordering::AcqRel);
            if reader.u16(4) == abi::SENDER_DRY_EVENT {
                link.awaits_dry.notify_one();
            }
        } else {
            link.events.fetch_and(!bit, Ordering::AcqRel);
        }
    }
    Ok(())
}

/// Requests to an association.
fn request(sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    let reader = Reader(value);
    let id = reader.i32(0);
    if name == abi::STREAM_SCHEDULER_VALUE {
        return stream_value(sock, reader);
    }
    if !is_present(sock, id)? {
        match name {
            abi::ENABLE_STREAM_RESET if reader.u32(4) & !7 == 0 => {
                sock.link.set_accepted(reader.u32(4));
            }
            abi::STREAM_SCHEDULER => {
                values::scheduler(reader.u32(4)).ok_or(libc::EINVAL)?;
                lock(&sock.options).scheduler = Some(reader.u32(4));
            }
            _ => return Err(libc::EINVAL),
        }
        return Ok(());
    }
    let association = sock.association(id)?;
    // As Linux, which asks its peer only for what it grants itself.
    let accepts = |flag| -> Errno<bool> { Ok(sock.member(id)?.accepted() & flag != 0) };
    let list = || -> Errno<Vec<StreamId>> {
        let count = usize::from(reader.u16(6));
        let bytes = value.get(8..8 + 2 * count).ok_or(libc::EINVAL)?;
        Ok(bytes.chunks(2).map(|two| StreamId(Reader(two).u16(0))).collect())
    };
    match name {
        abi::PRIMARY_ADDR => {
            let path = path(&association, &value[4..])?;
            association.set_primary(path.view.id).map_err(|_| libc::EINVAL)
        }
        abi::SET_PEER_PRIMARY_ADDR => {
            let local = address::parse(&value[4..])?.ip();
            association.set_peer_primary(local).map_err(|error| match error {
                AddressError::NotAgreed => libc::EPERM,
                _ => libc::EADDRNOTAVAIL,
            })
        }
        abi::ENABLE_STREAM_RESET => {
            let flags = reader.u32(4);
            if flags & !7 != 0 {
                return Err(libc::EINVAL);
            }
            sock.member(id)?.set_accepted(flags);
            // Linux keeps the value even if the two sides have not agreed on reconfiguration.
            let _ = association.accept_requests(accepted_requests(flags));
            Ok(())
        }
        abi::RESET_STREAMS if !accepts(1)? => Err(libc::ENOPROTOOPT),
        abi::RESET_ASSOC if !accepts(2)? => Err(libc::ENOPROTOOPT),
        abi::ADD_STREAMS if !accepts(4)? => Err(libc::ENOPROTOOPT),
        abi::RESET_STREAMS => {
            let reset = match reader.u16(4) {
                1 => StreamReset::Incoming,
                2 => StreamReset::Outgoing,
                3 => StreamReset::Both,
                _ => return Err(libc::EINVAL),
            };
            association.reset_streams(reset, &list()?).map_err(reconfiguration)
        }
        abi::RESET_ASSOC => association.reset_association().map_err(reconfiguration),
        abi::ADD_STREAMS => {
            association.add_streams(reader.u16(6), reader.u16(4)).map_err(reconfiguration)
        }
        abi::STREAM_SCHEDULER => {
            let scheduler = values::scheduler(reader.u32(4)).ok_or(libc::EINVAL)?;
            association.set_stream_scheduler(scheduler);
            Ok(())
        }
        _ => Err(libc::EINVAL),
    }
}

/// SCTP_STREAM_SCHEDULER_VALUE: of one association, or SCTP_CURRENT_ASSOC.
fn stream_value(sock: &Sock, reader: Reader<'_>) -> Errno<()> {
    let (id, stream, value) = (reader.i32(0), StreamId(reader.u16(4)), reader.u16(6));
    let links = match &sock.many {
        None => vec![sock.link.clone()],
        Some(many) if id == rules::CURRENT => many.all(),
        Some(_) => vec![sock.member(id)?],
    };
    for association in links.iter().filter_map(|link| link.association()) {
        association.set_stream_value(stream, value).map_err(|_| libc::EINVAL)?;
    }
    Ok(())
}

fn reconfiguration(error: ReconfigError) -> c_int {
    match error {
        ReconfigError::NotAgreed => libc::ENOPROTOOPT,
        ReconfigError::NotEstablished => libc::ENOTCONN,
        ReconfigError::InProgress => libc::EINPROGRESS,
        _ => libc::EINVAL,
    }
}

/// Linux knows the option but polypath does not support it, or neither knows it.
fn unknown(name: c_int) -> c_int {
    let known = (0..=37).contains(&name) || (100..=133).contains(&name);
    if known { libc::EOPNOTSUPP } else { libc::ENOPROTOOPT }
}

fn integer(value: i32) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

/// `sctp_assoc_value`.
fn assoc_value(id: i32, value: u32) -> Vec<u8> {
    Writer::default().i32(id).u32(value).done()
}

/// Position of a type of notification in `sctp_event_subscribe`.
fn event_bit(kind: u16) -> Errno<usize> {
    let bit = usize::from(kind.wrapping_sub(abi::DATA_IO_EVENT));
    if bit < abi::EVENT_TYPES { Ok(bit) } else { Err(libc::EINVAL) }
}

/// SO_SNDBUF in bytes, which limits the size of a message.
pub(crate) fn send_buffer(fd: c_int, sock: &Sock) -> usize {
    let mut size = abi::BUFFER;
    if lock(&sock.options).send_buffer.is_some() {
        let mut length = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: the value is an int that lives during the call.
        unsafe {
            let value = (&raw mut size).cast();
            real::getsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, value, &raw mut length);
        }
    }
    size.max(0) as usize
}

/// The value of a SOL_SOCKET or IPPROTO_IPV6 option that the socket pair does not have; `None` if
/// the kernel's value for the pair is right.
pub(crate) fn get_socket(sock: &Sock, level: c_int, name: c_int) -> Option<Errno<Vec<u8>>> {
    let options = lock(&sock.options);
    let value = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => sock.link.take_error(),
        (libc::SOL_SOCKET, libc::SO_TYPE) => sock.kind,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => abi::IPPROTO_SCTP,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => sock.family,
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
            i32::from(sock.link.phase() == Phase::Listening && !sock.link.is_refusing())
        }
        // The pair's is larger.
        (libc::SOL_SOCKET, libc::SO_SNDBUF) if options.send_buffer.is_none() => abi::BUFFER,
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => options.reuse_address.into(),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => options.shares_port.into(),
        // What only local sockets have.
        (libc::SOL_SOCKET, libc::SO_PEEK_OFF) => return Some(Err(libc::EOPNOTSUPP)),
        (libc::SOL_SOCKET, SO_PEERGROUPS) => return Some(Err(libc::ENODATA)),
        (libc::SOL_SOCKET, libc::SO_PEERCRED) => {
            return Some(Ok([0, -1, -1].map(i32::to_ne_bytes).concat()));
        }
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let (on, seconds) = options.linger;
            return Some(Ok([i32::from(on).to_ne_bytes(), seconds.to_ne_bytes()].concat()));
        }
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => options.only_v6.into(),
        (libc::SOL_SOCKET, _) => return None,
        _ => {
            report::missed(format!("getsockopt level {level} option {name}"));
            return Some(Err(libc::EOPNOTSUPP));
        }
    };
    Some(Ok(integer(value)))
}

/// Whether options of this level can be set on an SCTP socket.
pub(crate) const fn has_level(level: c_int) -> bool {
    matches!(level, libc::SOL_SOCKET | abi::IPPROTO_SCTP | libc::IPPROTO_IP | libc::IPPROTO_IPV6)
}

/// Sets such an option; `None` if it is the kernel's business.
pub(crate) fn set_socket(
    sock: &Sock,
    level: c_int,
    name: c_int,
    value: &[u8],
) -> Option<Errno<()>> {
    let reader = Reader(value);
    let mut options = lock(&sock.options);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_BINDTODEVICE) => return Some(bind_to_device(value)),
        (libc::SOL_SOCKET, _) if value.len() < 4 => return Some(Err(libc::EINVAL)),
        (libc::SOL_SOCKET, libc::SO_PEEK_OFF) => return Some(Err(libc::EOPNOTSUPP)),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => options.shares_port = reader.i32(0) != 0,
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
            options.send_buffer = Some(reader.i32(0));
            return None;
        }
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
            options.receive_buffer = Some(reader.i32(0));
            sock.link.inbox().limit(options.window().unwrap_or_default() as usize / 4);
            return None;
        }
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => options.reuse_address = reader.i32(0) != 0,
        (libc::SOL_SOCKET, libc::SO_LINGER) if value.len() >= 8 => {
            options.linger = (reader.i32(0) != 0, reader.i32(4));
        }
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => options.only_v6 = reader.i32(0) != 0,
        (libc::SOL_SOCKET, _) => return None,
        _ => {
            report::missed(format!("setsockopt level {level} option {name}"));
            return Some(Err(libc::EOPNOTSUPP));
        }
    }
    Some(Ok(()))
}

/// An option of local sockets that the crate `libc` does not have.
const SO_PEERGROUPS: c_int = 59;

/// SO_BINDTODEVICE: the addresses decide about the devices.
fn bind_to_device(value: &[u8]) -> Errno<()> {
    let name: Vec<u8> = value.iter().copied().take_while(|byte| *byte != 0).collect();
    if name.is_empty() {
        return Ok(());
    }
    let name = CString::new(name).map_err(|_| libc::EINVAL)?;
    // SAFETY: the name is a C string.
    if unsafe { libc::if_nametoindex(name.as_ptr()) } == 0 {
        return Err(libc::ENODEV);
    }
    report::missed("setsockopt SO_BINDTODEVICE");
    Err(libc::EOPNOTSUPP)
}
