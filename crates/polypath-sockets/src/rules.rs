//! What Linux checks of a call on an option before it looks at the values: whether the option can
//! be set or read, its size, and the association's id.

use std::ffi::c_int;

use crate::abi;
use crate::bytes::Reader;
use crate::errno::Errno;
use crate::link::lock;
use crate::parameters;
use crate::security;
use crate::socket::Sock;

/// Ids that mean several associations of a one-to-many socket, or those to come.
pub(crate) const FUTURE: i32 = 0;
pub(crate) const CURRENT: i32 = 1;
pub(crate) const ALL: i32 = 2;

/// Sizes of a value to set.
#[derive(Clone, Copy)]
enum Size {
    Exact(usize),
    /// The structure, and an older form of it.
    Either(usize, usize),
    Least(usize),
    Most(usize),
}

/// Associations that a value is set for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The option has no id, or checks it on its own.
    Socket,
    /// Future associations, or a present one.
    One,
    /// These, SCTP_CURRENT_ASSOC and SCTP_ALL_ASSOC.
    Each,
}

/// Size and scope of an option that can be set; `None` if it can only be read.
fn rule(name: c_int) -> Option<(Size, Scope)> {
    use Scope::{Each, One, Socket};
    use Size::{Either, Exact, Least, Most};
    Some(match name {
        abi::STATUS
        | abi::GET_PEER_ADDR_INFO
        | abi::PEER_AUTH_CHUNKS
        | abi::LOCAL_AUTH_CHUNKS
        | abi::GET_ASSOC_NUMBER
        | abi::GET_ASSOC_ID_LIST
        | abi::GET_ASSOC_STATS
        | abi::PR_ASSOC_STATUS
        | abi::PR_STREAM_STATUS => return None,
        abi::RTOINFO => (Exact(16), One),
        abi::ASSOCINFO => (Exact(20), One),
        abi::INITMSG => (Exact(8), Socket),
        abi::AUTOCLOSE | abi::ADAPTATION_LAYER => (Exact(4), Socket),
        abi::FRAGMENT_INTERLEAVE | abi::PARTIAL_DELIVERY_POINT => (Exact(4), Socket),
        abi::PRIMARY_ADDR => (Exact(132), One),
        abi::SET_PEER_PRIMARY_ADDR => (Exact(132), Socket),
        abi::PEER_ADDR_PARAMS => (Either(156, 152), One),
        abi::DEFAULT_SEND_PARAM => (Exact(32), Each),
        abi::EVENTS => (Most(abi::EVENT_TYPES), Socket),
        abi::MAXSEG => (Either(8, 4), One),
        abi::MAX_BURST => (Either(8, 4), Each),
        abi::DELAYED_SACK => (Either(12, 8), Each),
        abi::DEFAULT_SNDINFO => (Exact(16), Each),
        abi::DEFAULT_PRINFO => (Exact(12), Each),
        abi::CONTEXT | abi::ENABLE_STREAM_RESET => (Exact(8), Each),
        abi::AUTH_CHUNK => (Exact(1), Socket),
        abi::AUTH_KEY => (Least(9), Each),
        abi::AUTH_ACTIVE_KEY | abi::AUTH_DELETE_KEY | abi::AUTH_DEACTIVATE_KEY => (Exact(8), Each),
        abi::PEER_ADDR_THLDS | abi::PEER_ADDR_THLDS_V2 => (Least(144), One),
        abi::PR_SUPPORTED
        | abi::RECONFIG_SUPPORTED
        | abi::ASCONF_SUPPORTED
        | abi::AUTH_SUPPORTED
        | abi::ECN_SUPPORTED
        | abi::EXPOSE_PF_STATE => (Exact(8), One),
        abi::INTERLEAVING_SUPPORTED => (Least(8), One),
        abi::STREAM_SCHEDULER => (Least(8), Each),
        abi::STREAM_SCHEDULER_VALUE | abi::RESET_STREAMS | abi::EVENT => (Least(8), Socket),
        abi::ADD_STREAMS => (Exact(8), Socket),
        abi::RESET_ASSOC => (Exact(4), Socket),
        abi::UDP_ENCAPS_PORT | abi::PROBE_INTERVAL => (Exact(144), One),
        _ => (Least(4), Socket),
    })
}

/// Position of the association's id in the structure of an option.
fn id_at(name: c_int) -> usize {
    match name {
        abi::DEFAULT_SEND_PARAM => 28,
        abi::DEFAULT_SNDINFO => 12,
        _ => 0,
    }
}

/// The association's id in the structure of an option.
pub(crate) fn id(name: c_int, value: &[u8]) -> i32 {
    Reader(value).i32(id_at(name))
}

/// Checks a call of setsockopt, and returns [`CURRENT`] or [`ALL`] if the value is for several
/// associations.
pub(crate) fn check_set(sock: &Sock, name: c_int, value: &[u8]) -> Errno<Option<i32>> {
    let (size, scope) = rule(name).ok_or(libc::ENOPROTOOPT)?;
    let options = *lock(&sock.options);
    match name {
        abi::AUTOCLOSE if sock.many.is_none() => return Err(libc::EOPNOTSUPP),
        abi::REUSE_PORT if sock.many.is_some() => return Err(libc::EOPNOTSUPP),
        abi::REUSE_PORT if lock(&sock.names).bound => return Err(libc::EFAULT),
        abi::SET_PEER_PRIMARY_ADDR if !parameters::config(&options)?.dynamic_addresses() => {
            return Err(libc::EPERM);
        }
        abi::AUTH_CHUNK | abi::HMAC_IDENT if !security::is_authenticated(&options)? => {
            return Err(libc::EACCES);
        }
        _ => {}
    }
    let fits = match size {
        Size::Exact(size) => value.len() == size,
        Size::Either(size, older) => value.len() == size || value.len() == older,
        Size::Least(size) => value.len() >= size,
        Size::Most(size) => value.len() <= size,
    };
    if !fits {
        return Err(libc::EINVAL);
    }
    // Options of a plain integer.
    if scope == Scope::Socket || value.len() < 8 {
        return Ok(None);
    }
    let id = id(name, value);
    match (&sock.many, id) {
        (None, _) | (_, FUTURE) => Ok(None),
        (_, CURRENT | ALL) if scope == Scope::Each => Ok(Some(id)),
        (Some(many), _) => many.open(id).map(|_| None).ok_or(libc::EINVAL),
    }
}

/// The value for another association.
pub(crate) fn with_id(name: c_int, value: &[u8], id: i32) -> Vec<u8> {
    let (at, mut value) = (id_at(name), value.to_vec());
    value[at..at + 4].copy_from_slice(&id.to_ne_bytes());
    value
}

/// Checks a call of getsockopt. Those without a rule check the rest on their own.
pub(crate) fn check_get(sock: &Sock, name: c_int, request: &[u8]) -> Errno<()> {
    match name {
        abi::SET_PEER_PRIMARY_ADDR | abi::RESET_STREAMS | abi::RESET_ASSOC | abi::ADD_STREAMS => {
            return Err(libc::ENOPROTOOPT);
        }
        abi::AUTOCLOSE if sock.many.is_none() => return Err(libc::EOPNOTSUPP),
        abi::AUTH_CHUNK | abi::AUTH_KEY | abi::AUTH_DELETE_KEY | abi::AUTH_DEACTIVATE_KEY => {
            return Err(libc::EOPNOTSUPP);
        }
        abi::HMAC_IDENT if !security::is_authenticated(&lock(&sock.options))? => {
            return Err(libc::EACCES);
        }
        abi::LOCAL_AUTH_CHUNKS | abi::PEER_AUTH_CHUNKS if request.len() < 8 => {
            return Err(libc::EINVAL);
        }
        _ => {}
    }
    let Some((size, scope)) = rule(name) else { return Ok(()) };
    let least = match size {
        Size::Exact(size) | Size::Either(_, size) | Size::Least(size) => size,
        Size::Most(_) => 1,
    };
    if request.len() < least || (name == abi::MAXSEG && (5..8).contains(&request.len())) {
        return Err(libc::EINVAL);
    }
    let id = id(name, request);
    if scope != Scope::Socket
        && request.len() >= 8
        && let Some(many) = &sock.many
        && id != FUTURE
        && many.open(id).is_none()
    {
        return Err(libc::EINVAL);
    }
    match name {
        abi::STREAM_SCHEDULER_VALUE => sock.association(id).map(drop),
        abi::AUTH_ACTIVE_KEY if !security::is_authenticated(&lock(&sock.options))? => {
            Err(libc::EACCES)
        }
        _ => Ok(()),
    }
}
