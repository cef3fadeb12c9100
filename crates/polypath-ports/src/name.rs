//! The address of the daemon's socket, and the check of its peers.

use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;
use rustix::process::geteuid;

/// Version of the messages.
const VERSION: u32 = 2;

/// The abstract address of the daemon for a UDP port: abstract addresses belong to a network
/// namespace, as UDP ports do, and leave no file.
pub(crate) fn address(udp_port: u16) -> io::Result<SocketAddr> {
    let name = format!("polypath-ports-{VERSION}-{}-{udp_port}", geteuid().as_raw());
    SocketAddr::from_abstract_name(name)
}

/// The process at the other end of a connection; an error if another user runs it.
pub(crate) fn peer(connection: &impl AsFd) -> io::Result<Pid> {
    let credentials = getsockopt(connection, sockopt::PeerCredentials)?;
    if credentials.uid() != geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Pid::from_raw(credentials.pid()))
}
