//! This host's end: sockets, ports, and what they may be refused.

use std::net::IpAddr;

use polypath::{BindError, Config, Encapsulation, Encryption, Endpoint, EndpointOptions};

use crate::failure::{Failure, system_text};

/// Makes the endpoint.
pub(crate) fn bind(
    addresses: Vec<IpAddr>,
    port: u16,
    encapsulation: Encapsulation,
    listen: bool,
    config: Config,
    encryption: Option<Encryption>,
) -> Result<Endpoint, Failure> {
    let options = EndpointOptions {
        addresses,
        port,
        encapsulation,
        listen,
        config,
        encryption,
        ..EndpointOptions::default()
    };
    Endpoint::bind(options).map_err(|error| failure(&error))
}

fn failure(error: &BindError) -> Failure {
    let failure = Failure::new(match error {
        BindError::Socket { address, source } => {
            format!("cannot use {address}: {}", system_text(source))
        }
        error => error.to_string(),
    });
    match error {
        BindError::InUse { .. } => failure.hint("another --udp-port, or stop what uses it"),
        BindError::NotLocal { .. } => failure.hint("--bind takes addresses of this host"),
        BindError::RawNotPermitted => {
            failure.hint("run as root, or leave --raw away to send over UDP")
        }
        _ => failure,
    }
}
