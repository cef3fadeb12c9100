//! IPv4 Address and IPv6 Address, RFC 9260 3.3.2.1.1 and 3.3.2.1.2.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |           Type = 5            |          Length = 8           |
//! +-------------------------------+-------------------------------+
//! |                         IPv4 Address                          |
//! +---------------------------------------------------------------+
//!
//! +-------------------------------+-------------------------------+
//! |           Type = 6            |          Length = 20          |
//! +-------------------------------+-------------------------------+
//! |                    IPv6 Address (16 bytes)                    |
//! +---------------------------------------------------------------+
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Parameter, ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

pub(super) fn parse_ipv4(value: &[u8]) -> Option<Parameter<'_>> {
    let octets: [u8; 4] = value.try_into().ok()?;
    Some(Parameter::Ipv4(octets.into()))
}

pub(super) fn parse_ipv6(value: &[u8]) -> Option<Parameter<'_>> {
    let octets: [u8; 16] = value.try_into().ok()?;
    Some(Parameter::Ipv6(octets.into()))
}

impl Parameter<'_> {
    /// The address, if this is an address parameter.
    pub const fn address(&self) -> Option<IpAddr> {
        match *self {
            Self::Ipv4(address) => Some(IpAddr::V4(address)),
            Self::Ipv6(address) => Some(IpAddr::V6(address)),
            _ => None,
        }
    }
}

impl ParameterWriter<'_> {
    /// Writes an IPv4 Address parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn ipv4(&mut self, address: Ipv4Addr) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::IPV4, &address.octets())
    }

    /// Writes an IPv6 Address parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn ipv6(&mut self, address: Ipv6Addr) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::IPV6, &address.octets())
    }

    /// Writes the parameter for an address. An IPv4-mapped IPv6 address is written as an IPv4
    /// address: RFC 9260 3.3.2.1.2, "MUST NOT use an IPv4-mapped IPv6 address".
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn address(&mut self, address: IpAddr) -> Result<(), DoesNotFit> {
        match address.to_canonical() {
            IpAddr::V4(address) => self.ipv4(address),
            IpAddr::V6(address) => self.ipv6(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn ipv4() {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let bytes = [0, 5, 0, 8, 192, 0, 2, 1];
        check(|p| p.ipv4(address), Parameter::Ipv4(address), &bytes);
        check(|p| p.address(address.into()), Parameter::Ipv4(address), &bytes);
        let mapped = address.to_ipv6_mapped();
        check(|p| p.address(mapped.into()), Parameter::Ipv4(address), &bytes);
        assert_eq!(Parameter::Ipv4(address).address(), Some(address.into()));
        check_malformed(&[0, 5, 0, 7, 192, 0, 2]);
        check_malformed(&[0, 5, 0, 9, 192, 0, 2, 1, 0]);
    }

    #[test]
    fn ipv6() {
        let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let bytes = [0, 6, 0, 20, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        check(|p| p.ipv6(address), Parameter::Ipv6(address), &bytes);
        check(|p| p.address(address.into()), Parameter::Ipv6(address), &bytes);
        assert_eq!(Parameter::Ipv6(address).address(), Some(address.into()));
        assert_eq!(Parameter::EcnCapable.address(), None);
        check_malformed(&[0, 6, 0, 8, 192, 0, 2, 1]);
    }
}
