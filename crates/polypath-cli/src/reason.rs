//! Messages for the reasons why an association ended.

use polypath::{CloseReason, ConnectError, ENCRYPTED_ONLY, Refusal};
use polypath_apps::error::Error;

use crate::failure::Failure;

/// The failure when no connection to `host` was established.
pub(crate) fn connect(
    host: &str,
    udp_port: Option<u16>,
    port: u16,
    error: &ConnectError,
) -> Failure {
    let reason = match error {
        ConnectError::Closed(reason) => reason,
        ConnectError::Refused(why) => return not_encrypted(host, why),
        _ => return Failure::new(format!("cannot connect to {host}: {error}")),
    };
    let firewall = || match udp_port {
        Some(udp_port) => {
            format!("is polypath running there, and does every firewall allow UDP port {udp_port}?")
        }
        None => {
            "is polypath running there with --raw, and does every firewall allow IP protocol 132?"
                .to_owned()
        }
    };
    match reason {
        CloseReason::Unreachable { what } => {
            Failure::new(format!("cannot connect to {host}: {what}")).hint(match udp_port {
                Some(udp_port) => format!(
                    "is polypath running there on UDP port {udp_port}, and is there a route?"
                ),
                None => firewall(),
            })
        }
        CloseReason::NoAnswer => Failure::new(format!("no answer from {host}")).hint(firewall()),
        CloseReason::PeerAbort { cause } if cause.is_empty() => {
            Failure::new(format!("{host} refuses the connection"))
                .hint(format!("is polypath waiting there on SCTP port {port}?"))
        }
        CloseReason::PeerAbort { cause } if cause.contains(ENCRYPTED_ONLY) => {
            Failure::new(format!("{host} accepts only encrypted connections"))
                .hint("omit --plain, or pass it there as well")
        }
        CloseReason::PeerAbort { cause } => {
            Failure::new(format!("{host} refuses the connection: {cause}"))
        }
        reason => Failure::new(format!("cannot connect to {host}: {reason}")),
    }
}

/// The failure when no encrypted connection was established.
fn not_encrypted(host: &str, why: &Refusal) -> Failure {
    match why {
        Refusal::Certificate { found } => Failure::new(format!(
            "{host} is not the expected host: it has the fingerprint {}",
            found.short()
        )),
        Refusal::ByPeer => Failure::new(format!("{host} does not trust this host"))
            .hint("it accepts other fingerprints only, or has another secret"),
        Refusal::Plain => Failure::new(format!("{host} does not encrypt"))
            .hint("omit --plain there, or pass it here as well"),
        Refusal::Version => Failure::new(format!("{host} has no DTLS 1.3"))
            .hint("--min-dtls 1.2 accepts the older version"),
        why => Failure::new(format!("cannot connect to {host}: {why}")),
    }
}

/// The failure when the association with `peer` ended before the transfer did.
pub(crate) fn lost(peer: &str, reason: &CloseReason) -> Failure {
    match reason {
        CloseReason::Graceful => {
            Failure::new(format!("{peer} closed the connection before the end"))
        }
        CloseReason::PeerAbort { cause } if cause.is_empty() => {
            Failure::new(format!("{peer} aborted the connection"))
        }
        CloseReason::PeerAbort { cause } => {
            Failure::new(format!("{peer} aborted the connection: {cause}"))
        }
        CloseReason::PeerUnreachable => {
            Failure::new(format!("lost {peer}: no path reaches it any more"))
        }
        reason => Failure::new(format!("lost {peer}: {reason}")),
    }
}

/// The failure of an application's operation with `peer`.
pub(crate) fn ended(peer: &str, error: &Error) -> Failure {
    match error {
        Error::Closed(reason) => lost(peer, reason),
        Error::Silent { .. } => lost(peer, &CloseReason::PeerUnreachable),
        Error::Peer(reason) | Error::Protocol(reason) => Failure::new(format!("{peer}: {reason}")),
        error => Failure::new(error.to_string()),
    }
}
