//! The endpoint's sockets. Some are opened and closed as the host's addresses change.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::task::Context;
use std::time::Duration;

use polypath_proto::Time;

use crate::encapsulation::Encapsulation;
use crate::error::BindError;
use crate::options::Announce;
use crate::routes;
use crate::shared::State;
use crate::socket::{self, Owner, Place, Socket};
use crate::watch::{self, Watch};

/// Time that a socket stays open after the last peer has stopped sending to its address, to receive
/// packets already in flight. RFC 5061 5.3 requires it only until the peer has acknowledged the
/// change.
const LINGER: Duration = Duration::from_secs(1);

/// Options shared by all sockets of an endpoint.
#[derive(Clone)]
pub(crate) struct Opener {
    /// Contains the UDP port that was bound.
    pub(crate) encapsulation: Encapsulation,
    pub(crate) port: u16,
    pub(crate) buffer: usize,
    pub(crate) place: Place,
    /// Finds the endpoint's datagrams among those of a shared socket; `None` before the endpoint
    /// exists.
    pub(crate) owner: Option<Owner>,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Opener {
    pub(crate) fn open(&self, address: IpAddr) -> Result<Socket, BindError> {
        let socket = self.open_all(&[address])?.pop().ok_or(BindError::NoAddress)?;
        if let Some(owner) = &self.owner {
            socket.set_owner(owner.clone());
        }
        Ok(socket)
    }

    pub(crate) fn open_all(&self, addresses: &[IpAddr]) -> Result<Vec<Socket>, BindError> {
        socket::bind(addresses, self.encapsulation, self.port, self.buffer, &self.place)
    }
}

/// The sockets of the driver.
pub(crate) struct Locals {
    pub(crate) sockets: Vec<Socket>,
    opener: Opener,
    /// Present if the endpoint follows the host's addresses, or announces them to peers that it
    /// accepts associations from.
    watch: Option<Watch>,
    follows: bool,
    announces: Option<Announced>,
}

/// The families of addresses to announce: those of the unspecified addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    v4: bool,
    v6: bool,
    which: Announce,
    listens: bool,
}

impl Announced {
    /// `None` if no address is unspecified, or nothing is to be announced.
    pub(crate) fn new(bound: &[IpAddr], which: Announce, listens: bool) -> Option<Self> {
        let v4 = bound.iter().any(|ip| ip.is_unspecified() && ip.is_ipv4());
        let v6 = bound.iter().any(|ip| ip.is_unspecified() && ip.is_ipv6());
        ((v4 || v6) && which != Announce::None).then_some(Self { v4, v6, which, listens })
    }

    /// The host's addresses of these families at the moment, to list and to begin paths at; none
    /// if they cannot be read.
    pub(crate) fn read(self) -> (Option<Vec<IpAddr>>, Vec<IpAddr>) {
        let useful = self.which == Announce::Useful;
        let all = if useful { routes::useful() } else { watch::announced() };
        let all = all.inspect_err(|error| {
            tracing::warn!("cannot read the host's addresses: {error}");
        });
        let fits = |ip: &IpAddr| if ip.is_ipv4() { self.v4 } else { self.v6 };
        let all: Vec<IpAddr> = all.unwrap_or_default().into_iter().filter(fits).collect();
        match (useful, self.listens) {
            (false, _) => (Some(all), Vec::new()),
            (true, true) => (Some(all.clone()), all),
            // A NAT may translate the addresses of the side that opens associations.
            (true, false) => (None, all),
        }
    }
}

impl Locals {
    /// `announces` if the addresses to announce are to be kept up to date.
    pub(crate) fn new(
        sockets: Vec<Socket>,
        opener: Opener,
        follows: bool,
        announces: Option<Announced>,
    ) -> Self {
        let watch = (follows || announces.is_some()).then(Watch::new);
        Self { sockets, opener, watch, follows, announces }
    }

    /// Adds and closes sockets as the handles requested, and follows the host's addresses. True if
    /// a socket is new.
    pub(crate) fn update(&mut self, cx: &mut Context<'_>, now: Time, state: &mut State) -> bool {
        let before = self.sockets.len();
        let mut news = !state.opened.is_empty();
        for socket in state.opened.drain(..) {
            self.sockets.push(socket);
        }
        self.close_unneeded(now, state);
        if let Some(mut watch) = self.watch.take() {
            if watch.poll(cx).is_ready() {
                if let Some(announced) = self.announces {
                    let (listed, sources) = announced.read();
                    state.proto.set_announced(listed, sources);
                }
                match watch::addresses() {
                    _ if !self.follows => {}
                    Ok(there) => news |= self.follow(&there, now, state, || watch.try_again(cx)),
                    Err(error) => tracing::warn!("cannot read the host's addresses: {error}"),
                }
            }
            self.watch = Some(watch);
        }
        if news || self.sockets.len() != before {
            state.locals = self.sockets.iter().map(Socket::local).collect();
        }
        news
    }

    /// Closes the sockets of removed addresses. Each stays open while a peer may still send to its
    /// address (RFC 5061 5.3 F4), and for [`LINGER`] after that.
    fn close_unneeded(&mut self, now: Time, state: &mut State) {
        let proto = &state.proto;
        let needed = |ip: &IpAddr| {
            proto.associations().any(|id| {
                proto
                    .association(id)
                    .is_some_and(|a| !a.is_closed() && a.local_addresses().contains(ip))
            })
        };
        for leaving in &mut state.leaving {
            let end = leaving.until.unwrap_or(now + LINGER);
            leaving.until = Some(end).filter(|_| !needed(&leaving.address));
        }
        state.leaving.retain(|leaving| leaving.until.is_none_or(|until| now < until));
        let leaves = |ip: IpAddr| state.leaving.iter().any(|leaving| leaving.address == ip);
        let kept = |ip: IpAddr| leaves(ip) || proto.config().addresses.contains(&ip);
        self.sockets.retain(|socket| kept(socket.local().ip()));
    }

    fn follow(
        &mut self,
        there: &[IpAddr],
        now: Time,
        state: &mut State,
        mut try_again: impl FnMut(),
    ) -> bool {
        let mut news = false;
        let all = |ip: &IpAddr| {
            let any =
                |s: &Socket| s.local().ip().is_unspecified() && s.local().is_ipv4() == ip.is_ipv4();
            self.sockets.iter().any(any)
        };
        let (anyway, there_too): (Vec<IpAddr>, Vec<IpAddr>) = there.iter().partition(|ip| all(ip));
        if self.sockets.iter().any(|socket| socket.local().ip().is_unspecified()) {
            // The wildcard socket receives for all of them.
            state.proto.set_host_addresses(now, anyway);
        }
        // An address that no peer can be reached from, such as that of a container bridge, is not
        // announced. Without any association, and with all bound addresses gone, use any address.
        let bare = state.proto.associations().next().is_none()
            && !there_too.iter().any(|ip| state.proto.config().addresses.contains(ip));
        for ip in &there_too {
            if state.proto.config().addresses.contains(ip)
                || !(bare || state.proto.is_routed(*ip, there))
            {
                continue;
            }
            if self.sockets.iter().any(|socket| socket.local().ip() == *ip) {
                state.leaving.retain(|leaving| leaving.address != *ip);
                state.proto.add_local_address(now, *ip);
                continue;
            }
            match self.opener.open(*ip) {
                Ok(socket) => {
                    tracing::debug!("{ip} has come");
                    self.sockets.push(socket);
                    state.proto.add_local_address(now, *ip);
                    news = true;
                }
                Err(error) => {
                    tracing::debug!("{ip} cannot be used yet: {error}");
                    try_again();
                }
            }
        }
        let follows = |ip: &IpAddr| !ip.is_unspecified() && !ip.is_loopback();
        let bound: Vec<SocketAddr> = self.sockets.iter().map(Socket::local).collect();
        for ip in bound.iter().map(SocketAddr::ip).filter(follows).filter(|ip| !there.contains(ip))
        {
            tracing::debug!("{ip} has gone");
            state.proto.remove_local_address(now, ip);
            state.leaving.retain(|leaving| leaving.address != ip);
            self.sockets.retain(|socket| socket.local().ip() != ip);
        }
        news
    }
}
