//! Socket options (RFC 6458 8), with Linux's structures and numbers.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polypath::{Association, Config, Path, PathState};

use crate::bytes::{Reader, Writer};
use crate::errno::Errno;
use crate::socket::{Phase, Sock, is_nonblocking, lock};
use crate::values::Options;
use crate::{abi, address, calls, data, report};

/// The value of an SCTP option. `request` is what the program's buffer holds: some options have
/// input.
pub(crate) fn get(fd: c_int, sock: &Sock, name: c_int, request: &[u8]) -> Errno<Vec<u8>> {
    let options = *lock(&sock.options);
    let reader = Reader(request);
    let mut writer = Writer::default();
    let id = if sock.link.phase() == Phase::Connected { sock.link.id } else { 0 };
    let (value, least) = match name {
        abi::INITMSG => {
            for value in options.init {
                writer.u16(value);
            }
            (writer.done(), 8)
        }
        abi::NODELAY => (integer(options.nodelay.into()), 4),
        abi::I_WANT_MAPPED_V4_ADDR => (integer(options.mapped.into()), 4),
        abi::RECVRCVINFO => (integer(options.recvrcvinfo.into()), 4),
        abi::AUTOCLOSE | abi::DISABLE_FRAGMENTS => (integer(0), 4),
        abi::MAXSEG if request.len() == 4 => (integer(0), 4),
        abi::MAXSEG => (writer.i32(0).u32(0).done(), 8),
        abi::RTOINFO => (rtoinfo(sock, &options)?, 16),
        abi::ASSOCINFO => (assocparams(sock, &options)?, 20),
        abi::PEER_ADDR_PARAMS => (paddrparams(sock, &options, request)?, 152),
        abi::DEFAULT_SEND_PARAM => {
            let send = options.send;
            writer.u16(send.stream).u16(0).u16(send.flags).u16(0).u32(send.ppid);
            writer.u32(send.context).u32(send.pr_value).u32(0).u32(0).i32(id);
            (writer.done(), 32)
        }
        abi::DEFAULT_SNDINFO => {
            let send = options.send;
            writer.u16(send.stream).u16(send.flags).u32(send.ppid).u32(send.context).i32(id);
            (writer.done(), 16)
        }
        abi::EVENTS => {
            let events = sock.link.events.load(Ordering::Acquire);
            let bytes = (0..abi::EVENT_TYPES).map(|bit| (events >> bit & 1) as u8).collect();
            // Programs built with older headers know fewer types.
            (bytes, 1)
        }
        abi::EVENT => {
            let bit = event_bit(reader.u16(4))?;
            let on = sock.link.events.load(Ordering::Acquire) >> bit & 1;
            (writer.i32(id).u16(reader.u16(4)).u8(on as u8).u8(0).done(), 8)
        }
        abi::STATUS => (status(sock)?, 176),
        abi::GET_PEER_ADDR_INFO => {
            let association = sock.association()?;
            let path = path(&association, request.get(4..).unwrap_or_default())?;
            (paddrinfo(sock, &path, association.peer_port()), 152)
        }
        abi::PRIMARY_ADDR => {
            let association = sock.association()?;
            let primary = primary(&association)?;
            let peer = SocketAddr::new(primary.view.remote, association.peer_port());
            (writer.i32(sock.link.id).raw(&address::storage(peer, sock.family)).done(), 132)
        }
        abi::GET_PEER_ADDRS | abi::GET_LOCAL_ADDRS => {
            let found = match name {
                abi::GET_PEER_ADDRS => calls::peers(sock)?,
                _ => calls::locals(sock),
            };
            let mut addresses = Vec::new();
            found.iter().for_each(|one| addresses.extend(address::format(*one, sock.family)));
            let fits = request.len() >= 8 + addresses.len();
            // The program passes the number of addresses for this association.
            let count = found.len() as u32;
            let value = writer.i32(reader.i32(0)).u32(count).raw(&addresses).done();
            return if fits { Ok(value) } else { Err(libc::ENOMEM) };
        }
        abi::CONNECTX3 => return calls::connectx3(fd, sock, reader),
        other => {
            report::missed(format!("getsockopt {}", abi::name(other)));
            return Err(unknown(other));
        }
    };
    if request.len() < least { Err(libc::EINVAL) } else { Ok(value) }
}

/// Sets an SCTP option.
pub(crate) fn set(fd: c_int, sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    let reader = Reader(value);
    let least = match name {
        abi::INITMSG | abi::EVENT => 8,
        abi::RTOINFO | abi::DEFAULT_SNDINFO => 16,
        abi::ASSOCINFO => 20,
        abi::DEFAULT_SEND_PARAM => 32,
        abi::PRIMARY_ADDR => 132,
        abi::PEER_ADDR_PARAMS => 152,
        abi::EVENTS => 1,
        _ => 4,
    };
    if value.len() < least {
        return Err(libc::EINVAL);
    }
    let on = reader.i32(0) != 0;
    let mut options = lock(&sock.options);
    match name {
        abi::INITMSG => {
            for (at, kept) in options.init.iter_mut().enumerate() {
                // 0 keeps the value: RFC 6458 8.1.3.
                let new = reader.u16(2 * at);
                *kept = if new == 0 { *kept } else { new };
            }
        }
        abi::NODELAY => options.nodelay = on,
        abi::RECVRCVINFO => options.recvrcvinfo = on,
        abi::I_WANT_MAPPED_V4_ADDR if on => options.mapped = true,
        // Neither needs an action: no association is closed automatically, and messages are
        // fragmented.
        abi::AUTOCLOSE | abi::DISABLE_FRAGMENTS if !on => {}
        abi::MAXSEG if reader.i32(if value.len() >= 8 { 4 } else { 0 }) == 0 => {}
        abi::DEFAULT_SEND_PARAM => options.send = data::sndrcv(reader),
        abi::DEFAULT_SNDINFO => data::sndinfo(&mut options.send, reader),
        abi::EVENTS => {
            let types = value.iter().take(abi::EVENT_TYPES).enumerate();
            let events = types.map(|(at, byte)| u32::from(*byte != 0) << at).sum();
            sock.link.events.store(events, Ordering::Release);
            missing(events);
        }
        abi::EVENT => {
            let bit = 1 << event_bit(reader.u16(4))?;
            if reader.u8(6) == 0 {
                sock.link.events.fetch_and(!bit, Ordering::AcqRel);
            } else {
                sock.link.events.fetch_or(bit, Ordering::AcqRel);
                missing(bit);
            }
        }
        abi::RTOINFO | abi::ASSOCINFO | abi::PEER_ADDR_PARAMS => {
            drop(options);
            return parameters(sock, name, value);
        }
        abi::PRIMARY_ADDR => {
            drop(options);
            let association = sock.association()?;
            let path = path(&association, &value[4..])?;
            return association.set_primary(path.view.id).map_err(|_| libc::EINVAL);
        }
        abi::BINDX_ADD | abi::BINDX_REM => {
            drop(options);
            return calls::bindx(sock, &address::parse_packed(value)?, name == abi::BINDX_ADD);
        }
        abi::CONNECTX => {
            drop(options);
            let peers = address::parse_packed(value)?;
            return calls::connect_to(fd, sock, &peers, is_nonblocking(fd, 0));
        }
        other => {
            report::missed(format!("setsockopt {}", abi::name(other)));
            return Err(unknown(other));
        }
    }
    Ok(())
}

/// Linux knows the option but polypath does not support it, or neither knows it.
fn unknown(name: c_int) -> c_int {
    let known = (0..=37).contains(&name) || (100..=133).contains(&name);
    if known { libc::EOPNOTSUPP } else { libc::ENOPROTOOPT }
}

/// SCTP_RTOINFO, SCTP_ASSOCINFO, SCTP_PEER_ADDR_PARAMS: for the next association, or for the
/// present one as far as it allows changes.
fn parameters(sock: &Sock, name: c_int, value: &[u8]) -> Errno<()> {
    let reader = Reader(value);
    let connected = sock.link.phase() == Phase::Connected;
    let refuse = || {
        report::missed(format!("setsockopt {} of an association", abi::name(name)));
        Err(libc::EOPNOTSUPP)
    };
    let mut options = lock(&sock.options);
    match name {
        abi::RTOINFO if connected => return refuse(),
        abi::RTOINFO => {
            let new = [reader.u32(4), reader.u32(8), reader.u32(12)];
            let [_, max, min] = new;
            if max != 0 && min > max {
                return Err(libc::EINVAL);
            }
            for (kept, new) in options.rto.iter_mut().zip(new) {
                *kept = if new == 0 { *kept } else { new };
            }
        }
        abi::ASSOCINFO => {
            let retrans = reader.u16(4);
            if retrans != 0 {
                options.max_retrans = retrans;
                drop(options);
                if connected {
                    sock.association()?.set_association_max_retrans(retrans.into());
                }
            }
        }
        _ => {
            let (interval, retrans, flags) = (reader.u32(132), reader.u16(136), reader.u32(146));
            const HB_DEMAND: u32 = 4;
            if connected && flags & HB_DEMAND != 0 && interval == 0 && retrans == 0 {
                drop(options);
                let association = sock.association()?;
                let path = path(&association, &value[4..])?;
                return association.request_heartbeat(path.view.id).map_err(|_| libc::EINVAL);
            }
            if connected {
                return refuse();
            }
            if retrans != 0 {
                options.path_max_retrans = retrans;
            }
            if interval != 0 {
                options.heartbeat = interval;
            }
        }
    }
    Ok(())
}

fn integer(value: i32) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

/// Position of a type of notification in `sctp_event_subscribe`.
fn event_bit(kind: u16) -> Errno<usize> {
    let bit = usize::from(kind.wrapping_sub(abi::DATA_IO_EVENT));
    if (1..abi::EVENT_TYPES).contains(&bit) { Ok(bit) } else { Err(libc::EINVAL) }
}

/// Counts subscriptions to notifications that are never generated.
fn missing(events: u32) {
    for (bit, name) in abi::MISSING_EVENTS {
        if events >> bit & 1 != 0 {
            report::missed(format!("notifications of type {name}"));
        }
    }
}

/// The path to an address of the peer; the primary one for the unspecified address.
fn path(association: &Association, bytes: &[u8]) -> Errno<Path> {
    match address::parse(bytes) {
        Ok(peer) if !peer.ip().is_unspecified() => {
            let mut paths = association.paths().into_iter();
            paths.find(|path| path.view.remote == peer.ip()).ok_or(libc::EINVAL)
        }
        _ => primary(association),
    }
}

fn primary(association: &Association) -> Errno<Path> {
    let primary = association.primary();
    association.paths().into_iter().find(|path| path.view.id == primary).ok_or(libc::EINVAL)
}

/// The configuration in use.
fn config(options: &Options) -> Errno<Config> {
    let engine = crate::engine::engine()?;
    options.config(&engine.settings.config)
}

fn ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn rtoinfo(sock: &Sock, options: &Options) -> Errno<Vec<u8>> {
    let config = config(options)?;
    let mut writer = Writer::default();
    writer.i32(sock.link.id).u32(ms(config.rto_initial()));
    Ok(writer.u32(ms(config.rto_max())).u32(ms(config.rto_min())).done())
}

fn assocparams(sock: &Sock, options: &Options) -> Errno<Vec<u8>> {
    let config = config(options)?;
    let peers = sock.link.association().map_or(0, |association| association.paths().len());
    let mut writer = Writer::default();
    writer.i32(sock.link.id).u16(config.association_max_retrans() as u16).u16(peers as u16);
    Ok(writer.u32(0).u32(config.receive_buffer()).u32(ms(config.cookie_life())).done())
}

fn paddrparams(sock: &Sock, options: &Options, request: &[u8]) -> Errno<Vec<u8>> {
    let config = config(options)?;
    let interval = config.heartbeat_interval();
    let mut writer = Writer::default();
    let name = request.get(4..132).map_or_else(|| vec![0; address::STORAGE], <[u8]>::to_vec);
    writer.i32(sock.link.id).raw(&name).u32(interval.map_or(0, ms));
    writer.u16(config.path_max_retrans() as u16).u32(config.path_mtu().into());
    // SPP_HB_ENABLE or SPP_HB_DISABLE; SPP_SACKDELAY_ENABLE.
    let flags = if interval.is_some() { 1 } else { 2 } | 1 << 5;
    Ok(writer.u32(ms(config.sack_delay())).u32(flags).u32(0).u8(0).u8(0).done())
}

/// `sctp_paddrinfo`.
fn paddrinfo(sock: &Sock, path: &Path, port: u16) -> Vec<u8> {
    let view = &path.view;
    let state = match view.state {
        PathState::Inactive | PathState::Removed => 0,
        PathState::PotentiallyFailed => 1,
        PathState::Active => 2,
        PathState::Unconfirmed => 3,
    };
    let peer = SocketAddr::new(view.remote, port);
    let mut writer = Writer::default();
    writer.i32(sock.link.id).raw(&address::storage(peer, sock.family)).u32(state);
    writer.u32(view.window.cwnd).u32(view.srtt.map_or(0, ms)).u32(ms(view.rto));
    writer.u32(path.mtu.mtu).done()
}

/// `sctp_status`.
fn status(sock: &Sock) -> Errno<Vec<u8>> {
    const ESTABLISHED: i32 = 4;
    let association = sock.association()?;
    let primary = primary(&association)?;
    let (outgoing, incoming) = association.streams();
    let in_flight: u32 = association.paths().iter().map(|path| path.view.in_flight).sum();
    let chunk = primary.view.max_chunk.max(1);
    let unacknowledged = in_flight.div_ceil(chunk) as u16;
    let queued = (association.buffered() as u32).saturating_sub(in_flight).div_ceil(chunk) as u16;
    let window = config(&lock(&sock.options))?.receive_buffer();
    let mut writer = Writer::default();
    writer.i32(sock.link.id).i32(ESTABLISHED).u32(window).u16(unacknowledged).u16(queued);
    writer.u16(incoming).u16(outgoing).u32(chunk.saturating_sub(16));
    Ok(writer.raw(&paddrinfo(sock, &primary, association.peer_port())).done())
}

/// The value of a SOL_SOCKET or IPPROTO_IPV6 option that the socket pair does not have; `None` if
/// the kernel's value for the pair is right.
pub(crate) fn get_socket(sock: &Sock, level: c_int, name: c_int) -> Option<Errno<Vec<u8>>> {
    let options = lock(&sock.options);
    let value = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => sock.link.take_error(),
        (libc::SOL_SOCKET, libc::SO_TYPE) => libc::SOCK_STREAM,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => abi::IPPROTO_SCTP,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => sock.family,
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => i32::from(sock.link.phase() == Phase::Listening),
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => options.reuse_address.into(),
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
