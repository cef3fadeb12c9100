//! The paths of an association, by address.

use polypath::{Association, Path};

use crate::address;
use crate::errno::Errno;

/// The path to an address of the peer; the primary one for the unspecified address.
pub(crate) fn path(association: &Association, bytes: &[u8]) -> Errno<Path> {
    match address::parse(bytes) {
        Ok(peer) if !peer.ip().is_unspecified() => {
            let mut paths = association.paths().into_iter();
            let port = association.peer_port();
            paths
                .find(|path| path.view.remote == peer.ip() && peer.port() == port)
                .ok_or(libc::EINVAL)
        }
        _ => primary(association),
    }
}

pub(crate) fn primary(association: &Association) -> Errno<Path> {
    let primary = association.primary();
    association.paths().into_iter().find(|path| path.view.id == primary).ok_or(libc::EINVAL)
}
