//! The local endpoint: sockets, ports, and errors when binding them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use polypath::{BindError, Endpoint, EndpointOptions};

use crate::failure::{Failure, system_text};

/// Binds the endpoint.
pub(crate) fn bind(options: EndpointOptions) -> Result<Endpoint, Failure> {
    Endpoint::bind(options).map_err(|error| failure(&error))
}

/// The unspecified address of each family in which this host has an address.
pub(crate) fn any_of_each_family() -> Result<Vec<IpAddr>, Failure> {
    let found = polypath::host_addresses().map_err(|error| {
        Failure::new(format!("cannot read the host's addresses: {}", system_text(&error)))
    })?;
    if found.is_empty() {
        return Err(Failure::new("no network interface has an address that other hosts can reach")
            .hint("is the network up?"));
    }
    let four = found.iter().any(IpAddr::is_ipv4).then_some(Ipv4Addr::UNSPECIFIED.into());
    let six = found.iter().any(IpAddr::is_ipv6).then_some(Ipv6Addr::UNSPECIFIED.into());
    Ok(four.into_iter().chain(six).collect())
}

fn failure(error: &BindError) -> Failure {
    let failure = Failure::new(match error {
        BindError::Socket { address, source } => {
            format!("cannot use {address}: {}", system_text(source))
        }
        error => error.to_string(),
    });
    match error {
        BindError::InUse { .. } => {
            failure.hint("pass another --udp-port, or stop the program that uses this one")
        }
        BindError::NotLocal { .. } => failure.hint("--bind needs addresses of this host"),
        BindError::RawNotPermitted => failure.hint("run as root, or omit --raw to send over UDP"),
        _ => failure,
    }
}
