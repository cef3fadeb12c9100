//! The local addresses that the peer knows, and the paths that may be used because of that (RFC
//! 5061 5.3, RFC 9260 5.4).

use std::net::IpAddr;

use super::Paths;
use crate::ids::PathId;
use crate::path::{Path, PathState};
use crate::shared::Shared;

/// The local addresses, with dynamic addresses.
#[derive(Debug)]
pub(crate) struct Locals {
    /// Addresses that the peer has learned: from the handshake, an acknowledged ASCONF, or by
    /// sending to them.
    pub(crate) announced: Vec<IpAddr>,
    /// Addresses that the host had at the start and the association does not use, if it follows the
    /// host's addresses.
    pub(crate) idle: Vec<IpAddr>,
}

impl Paths {
    /// The local addresses that paths may begin at.
    pub(crate) fn sources<'a>(&'a self, shared: &'a Shared) -> &'a [IpAddr] {
        if self.sources.is_empty() { &shared.config.addresses } else { &self.sources }
    }

    /// Whether the peer has learned this local address.
    pub(crate) fn is_announced(&self, local: IpAddr) -> bool {
        self.locals.as_ref().is_some_and(|l| l.announced.contains(&local))
    }

    /// Whether the peer has yet to acknowledge the path's local address.
    pub(crate) fn is_unannounced(&self, path: PathId, shared: &Shared) -> bool {
        let p = &self[path];
        // This runs for every packet; the checks below concern few.
        if p.state() != PathState::Unconfirmed {
            return false;
        }
        let Some(locals) = &self.locals else { return false };
        // An endpoint bound to all addresses may send from any of them, unless it announces the
        // host's addresses.
        let config = &shared.config;
        let any = config.addresses.iter().any(IpAddr::is_unspecified);
        (!any || config.host_addresses.is_some())
            && !locals.announced.contains(&p.local())
            && !locals.idle.contains(&p.local())
    }

    /// Whether the routes choose this one of the host's addresses, `present`, as source towards the
    /// peer.
    pub(crate) fn are_routed_from(
        &self,
        local: IpAddr,
        present: &[IpAddr],
        shared: &Shared,
    ) -> bool {
        let routes = &shared.config.routes;
        self.present().any(|p| routes.source_for(p.remote().ip(), present) == Some(local))
    }

    /// Whether SACKs and DATA may be sent on the path: neither to an address that has yet to be
    /// confirmed (RFC 9260 5.4) if the sender `verifies` addresses, nor from one that the peer has
    /// yet to acknowledge (RFC 5061 5.3 F1).
    pub(crate) fn may_answer(&self, path: PathId, verifies: bool) -> bool {
        match self.locals {
            None => !verifies || self.is_confirmed(path),
            Some(_) => self.may_carry(path),
        }
    }

    /// The path for a packet meant for `path`: another one if that is removed or must not be used.
    /// `None` if there is no usable path.
    pub(crate) fn redirected(
        &self,
        path: PathId,
        shared: &Shared,
        verifies: bool,
    ) -> Option<PathId> {
        let usable = |path: &PathId| {
            self[*path].state() != PathState::Removed
                && !self.is_unannounced(*path, shared)
                && (!verifies || self.is_confirmed(*path))
        };
        let first = [path, self.for_control(), self.fallback()];
        first.into_iter().chain(self.iter().map(Path::id)).find(usable)
    }
}
