//! Socket options of authenticated chunks (RFC 4895, RFC 6458 8.1 and 8.3).

use polypath::{AuthKeys, ChunkTypes, KeyError};

use crate::bytes::{Reader, Writer};
use crate::errno::Errno;
use crate::link::lock;
use crate::parameters::is_present;
use crate::socket::Sock;
use crate::values::Options;
use crate::{abi, notify, report};

/// HMAC identifiers of RFC 4895 that the core verifies, preferred first: SHA-256, SHA-1.
const HMACS: [u16; 2] = [3, 1];

pub(crate) fn get(sock: &Sock, name: i32, options: &Options, id: i32) -> Errno<Vec<u8>> {
    let mut writer = Writer::default();
    if name == abi::HMAC_IDENT {
        writer.u32(HMACS.len() as u32);
        for hmac in HMACS {
            writer.u16(hmac);
        }
        return Ok(writer.done());
    }
    let present = is_present(sock, id)?;
    if name == abi::AUTH_ACTIVE_KEY {
        let key = match present {
            true => sock.association(id)?.active_auth_key(),
            false => lock(&sock.names).auth_keys.active(),
        };
        return Ok(writer.i32(id).u16(key).u16(0).done());
    }
    let agreed = if present { sock.association(id)?.auth_chunks() } else { None };
    let chunks = match (name, agreed, present) {
        (abi::LOCAL_AUTH_CHUNKS, Some((local, _)), _) => local,
        (abi::LOCAL_AUTH_CHUNKS, None, false) if is_authenticated(options)? => options.auth_chunks,
        (abi::LOCAL_AUTH_CHUNKS, None, false) => return Err(libc::EACCES),
        (_, Some((_, peer)), _) => peer,
        (abi::PEER_AUTH_CHUNKS, None, false) => return Err(libc::EINVAL),
        // The two sides have not negotiated authentication.
        _ => return Err(libc::EACCES),
    };
    let types: Vec<u8> = chunks.iter().collect();
    Ok(writer.i32(id).u32(types.len() as u32).raw(&types).done())
}

/// SCTP_HMAC_IDENT: polypath always offers the same list.
fn hmacs(reader: Reader<'_>) -> Errno<()> {
    let count = reader.u32(0) as usize;
    let list: Vec<u16> = reader.0[4..].chunks_exact(2).map(|two| Reader(two).u16(0)).collect();
    let list = list.get(..count).ok_or(libc::EINVAL)?;
    // RFC 4895 3.3: SHA-1 is among them.
    if count > HMACS.len() || !list.contains(&1) {
        return Err(libc::EINVAL);
    }
    if list == HMACS {
        return Ok(());
    }
    report::missed("setsockopt SCTP_HMAC_IDENT with another list");
    Err(libc::EOPNOTSUPP)
}

pub(crate) fn set(sock: &Sock, name: i32, value: &[u8]) -> Errno<()> {
    let reader = Reader(value);
    if name == abi::HMAC_IDENT {
        return hmacs(reader);
    }
    if name == abi::AUTH_CHUNK {
        let chunk = ChunkTypes::authenticated(&[reader.u8(0)]);
        if chunk.is_empty() {
            return Err(libc::EINVAL);
        }
        let mut options = lock(&sock.options);
        if !is_authenticated(&options)? {
            return Err(libc::EACCES);
        }
        options.auth_chunks = options.auth_chunks.or(chunk);
        return Ok(());
    }
    let (id, key) = (reader.i32(0), reader.u16(4));
    if name == abi::AUTH_KEY && usize::from(reader.u16(6)) > value.len() - 8 {
        return Err(libc::EINVAL);
    }
    if !is_authenticated(&lock(&sock.options))? {
        return Err(libc::EACCES);
    }
    let secret = match (name, usize::from(reader.u16(6))) {
        // A length of 0 is the rest of the option.
        (abi::AUTH_KEY, 0) => &value[8..],
        (abi::AUTH_KEY, length) => &value[8..8 + length],
        _ => &[],
    };
    let change = |keys: &mut AuthKeys| match name {
        abi::AUTH_KEY => keys.set(key, secret),
        abi::AUTH_ACTIVE_KEY => keys.activate(key),
        abi::AUTH_DEACTIVATE_KEY => keys.deactivate(key),
        _ => keys.delete(key),
    };
    let present = is_present(sock, id)?;
    let result = match present {
        true => sock.association(id)?.change_auth_keys(change),
        false => change(&mut lock(&sock.names).auth_keys),
    };
    result.map_err(|error| match error {
        KeyError::TooMany => libc::ENOMEM,
        _ => libc::EINVAL,
    })?;
    if present && name == abi::AUTH_DEACTIVATE_KEY {
        // Each packet is authenticated with the key that is active when it is sent: nothing that
        // was sent needs the key any more.
        let link = sock.member(id)?;
        let notified = async move { notify::free_key(&link, key).await };
        drop(crate::engine::engine()?.runtime.spawn(notified));
    }
    Ok(())
}

/// Whether associations offer authentication.
pub(crate) fn is_authenticated(options: &Options) -> Errno<bool> {
    let engine = crate::engine::engine()?;
    Ok(options.authentication.unwrap_or_else(|| engine.settings.config.authentication()))
}
