//! Socket addresses in C's form.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{AF_INET, AF_INET6, sockaddr, socklen_t};

use crate::errno::Errno;
use crate::memory;

/// Size of `sockaddr_storage`.
pub(crate) const STORAGE: usize = 128;

/// The address in a C structure.
pub(crate) fn parse(bytes: &[u8]) -> Errno<SocketAddr> {
    let family = bytes.first_chunk().map(|two| c_int::from(u16::from_ne_bytes(*two)));
    match family {
        Some(AF_INET) if bytes.len() >= 16 => {
            let ip: [u8; 4] = bytes[4..8].try_into().expect("four bytes");
            Ok((Ipv4Addr::from(ip), u16::from_be_bytes([bytes[2], bytes[3]])).into())
        }
        Some(AF_INET6) if bytes.len() >= 28 => {
            let ip: [u8; 16] = bytes[8..24].try_into().expect("sixteen bytes");
            let port = u16::from_be_bytes([bytes[2], bytes[3]]);
            Ok((Ipv6Addr::from(ip).to_canonical(), port).into())
        }
        // Linux's SCTP returns the same error for other families.
        _ => Err(libc::EINVAL),
    }
}

/// The addresses in a packed array of C structures, as `sctp_bindx` and `sctp_connectx` pass them.
pub(crate) fn parse_packed(mut bytes: &[u8]) -> Errno<Vec<SocketAddr>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let address = parse(bytes)?;
        let family = c_int::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        bytes = &bytes[if family == AF_INET { 16 } else { 28 }..];
        found.push(address);
    }
    if found.is_empty() { Err(libc::EINVAL) } else { Ok(found) }
}

/// The C structure of an address. IPv4 addresses have this family, and are mapped in AF_INET6 (RFC
/// 6458 8.1.15).
pub(crate) fn format(address: SocketAddr, family: c_int) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) if family == AF_INET => {
            let mut bytes = (AF_INET as u16).to_ne_bytes().to_vec();
            bytes.extend(port);
            bytes.extend(ip.octets());
            bytes.resize(16, 0);
            bytes
        }
        ip => {
            let ip = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let mut bytes = (AF_INET6 as u16).to_ne_bytes().to_vec();
            bytes.extend(port);
            bytes.extend([0; 4]);
            bytes.extend(ip.octets());
            bytes.resize(28, 0);
            bytes
        }
    }
}

/// The same in a `sockaddr_storage`.
pub(crate) fn storage(address: SocketAddr, family: c_int) -> Vec<u8> {
    let mut bytes = format(address, family);
    bytes.resize(STORAGE, 0);
    bytes
}

/// Reads the address that a caller passes.
///
/// # Safety
///
/// `address` points to `length` readable bytes, unless [`memory::check`] refuses that.
pub(crate) unsafe fn read(address: *const sockaddr, length: socklen_t) -> Errno<SocketAddr> {
    if length as usize > STORAGE {
        return Err(libc::EINVAL);
    }
    memory::check(address, length as usize)?;
    if address.is_null() {
        return parse(&[]);
    }
    // SAFETY: by the contract of this function.
    parse(unsafe { std::slice::from_raw_parts(address.cast(), length as usize) })
}

/// Checks the address that a caller passes, before it is read.
pub(crate) fn check(address: *const sockaddr, length: socklen_t) -> Errno<()> {
    if length as usize > STORAGE {
        return Err(libc::EINVAL);
    }
    memory::probe(address, length as usize)
}

/// Checks the buffer for an address that a caller passes, before it is written.
///
/// # Safety
///
/// No other thread writes the length meanwhile.
pub(crate) unsafe fn check_buffer(address: *const sockaddr, length: *const socklen_t) -> Errno<()> {
    memory::probe(length, size_of::<socklen_t>())?;
    // SAFETY: it was readable a moment ago.
    let size = unsafe { length.read_unaligned() };
    if size as c_int <= -1 {
        return Err(libc::EINVAL);
    }
    memory::probe(address, size as usize)
}

/// The family of the address that a caller passes.
///
/// # Safety
///
/// As for [`read`].
pub(crate) unsafe fn family(address: *const sockaddr, length: socklen_t) -> Option<c_int> {
    let there = !address.is_null() && length as usize >= size_of::<libc::sa_family_t>();
    // SAFETY: by the contract of this function; there is a family.
    there.then(|| unsafe { (&raw const (*address).sa_family).read_unaligned() }.into())
}

/// Whether a caller passes an address of a family other than IPv4 and IPv6.
///
/// # Safety
///
/// As for [`read`].
pub(crate) unsafe fn is_foreign(address: *const sockaddr, length: socklen_t) -> bool {
    // SAFETY: by the contract of this function.
    let family = unsafe { family(address, length) };
    family.is_some_and(|family| ![AF_INET, AF_INET6, libc::AF_UNSPEC].contains(&family))
}

/// Writes an address to the buffer that the caller passes, truncated to its size, and sets the
/// length as accept(2) does. Does nothing if the caller passes none.
///
/// # Safety
///
/// Each pointer is null, or `length` points to the number of writable bytes at `address`.
pub(crate) unsafe fn write(bytes: &[u8], address: *mut sockaddr, length: *mut socklen_t) {
    if address.is_null() || length.is_null() {
        return;
    }
    // SAFETY: by the contract of this function; at most `*length` bytes are written.
    unsafe {
        let count = bytes.len().min(length.read_unaligned() as usize);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.cast(), count);
        length.write_unaligned(bytes.len() as socklen_t);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_c_structures() {
        for text in ["10.1.0.1:7", "[fd00::1]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(parse(&format(address, AF_INET6)), Ok(address), "{text}");
        }
        let v4 = "10.1.0.1:7".parse().unwrap();
        assert_eq!(format(v4, AF_INET)[..8], [2, 0, 0, 7, 10, 1, 0, 1]);
        assert_eq!(parse(&format(v4, AF_INET)), Ok(v4));
    }

    #[test]
    fn packed_addresses_have_their_own_sizes() {
        let addresses: Vec<SocketAddr> =
            ["10.1.0.1:7", "[fd00::1]:7"].iter().map(|text| text.parse().unwrap()).collect();
        let packed = [format(addresses[0], AF_INET), format(addresses[1], AF_INET6)].concat();
        assert_eq!(packed.len(), 44);
        assert_eq!(parse_packed(&packed), Ok(addresses));
        assert_eq!(parse_packed(&packed[..43]), Err(libc::EINVAL));
        assert_eq!(parse_packed(&[]), Err(libc::EINVAL));
    }

    #[test]
    fn other_families_are_refused() {
        assert_eq!(parse(&[1, 0, 0, 0]), Err(libc::EINVAL));
        assert_eq!(parse(&[2, 0, 0, 0]), Err(libc::EINVAL));
        assert_eq!(parse(&[]), Err(libc::EINVAL));
    }
}
