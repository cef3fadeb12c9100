//! The hosts of a scenario.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polypath::proto::PrefixRoutes;
use polypath::{DatagramSocket, EndpointOptions, Network, RouteTable};
use polypath_sim::network::HostId;

use crate::Error;
use crate::socket::VirtualSocket;
use crate::world::{Inbox, World, unspecified};

impl World {
    /// The host of this name; those at the ends of `[[path]]` are "sender" and "receiver".
    ///
    /// # Errors
    /// There is none.
    pub fn host(&self, name: &str) -> Result<Host, Error> {
        let state = self.lock();
        let id = state.network.host(name).ok_or_else(|| Error::NoHost {
            name: name.to_owned(),
            known: state.network.hosts().map(str::to_owned).collect(),
        })?;
        let addresses = state.network.addresses(id);
        let routes = Routes { own: addresses.clone(), ways: state.network.routes(id) };
        Ok(Host {
            world: self.clone(),
            id,
            name: name.to_owned(),
            addresses,
            routes: Arc::new(routes),
        })
    }
}

/// A host of the scenario: the [`Network`] of its endpoints.
#[derive(Clone, Debug)]
pub struct Host {
    world: World,
    id: HostId,
    name: String,
    addresses: Vec<IpAddr>,
    routes: Arc<dyn RouteTable>,
}

impl Host {
    /// Its name in the scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its addresses, one for each interface.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Options of an endpoint on this host: all of its addresses, in clear, with random numbers
    /// that follow from the scenario's seed.
    pub fn options(&self) -> EndpointOptions {
        EndpointOptions {
            addresses: self.addresses.clone(),
            routes: Arc::clone(&self.routes),
            seed: Some(self.world.next_seed(self.id)),
            network: Some(Arc::new(self.clone())),
            ..EndpointOptions::plain()
        }
    }
}

impl Network for Host {
    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSocket>> {
        let (ip, mut state) = (address.ip(), self.world.lock());
        if !ip.is_unspecified() && !self.addresses.contains(&ip) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let port = match address.port() {
            0 => state.free_port(self.id).ok_or(io::ErrorKind::AddrInUse)?,
            port => port,
        };
        let address = SocketAddr::new(ip, port);
        if state.is_taken(self.id, address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.sockets.insert((self.id, address), Inbox::default());
        drop(state);
        Ok(Box::new(VirtualSocket {
            world: self.world.clone(),
            host: self.id,
            addresses: self.addresses.clone(),
            routes: Arc::clone(&self.routes),
            address,
        }))
    }
}

/// The routes of a host.
#[derive(Debug)]
struct Routes<T> {
    /// Its addresses, which it reaches without a link.
    own: Vec<IpAddr>,
    /// To other hosts.
    ways: T,
}

impl<T: RouteTable> RouteTable for Routes<T> {
    fn local_for(&self, remote: IpAddr, index: usize, locals: &[IpAddr]) -> Option<IpAddr> {
        if self.own.contains(&remote) {
            return PrefixRoutes.local_for(remote, index, locals);
        }
        let local = self.ways.local_for(remote, index, locals);
        // An endpoint that is bound to an unspecified address has no other to choose.
        local.or_else(|| Some(unspecified(remote)).filter(|any| locals.contains(any)))
    }
}
