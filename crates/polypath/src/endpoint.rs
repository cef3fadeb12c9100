//! The handle of an endpoint.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polypath_dtls::{self as dtls, Fingerprint, Identity, Layer, Refusal};
use polypath_proto::{self as proto, EndpointConfig, EndpointStats, Message, Seed, Time};
use tokio::time::Instant;

use crate::association::Association;
use crate::driver::Driver;
use crate::encapsulation::Encapsulation;
use crate::error::{BindError, ConnectError, SendError};
use crate::locals::{Announced, Locals, Opener};
use crate::observer::Observer;
use crate::options::{Announce, ConnectOptions, EndpointOptions};
use crate::routes::Preferred;
use crate::secure::Secure;
use crate::shared::{Entry, HandleState, Leaving, Shared};
use crate::socket::{self, Owner, Place, SocketStats};

/// Handshakes of DTLS that may begin without a cookie at a time.
const UNPROVEN: usize = 32;

/// A set of local addresses with one SCTP port, which opens and accepts associations.
///
/// Clones are handles of the same endpoint. When the last one is dropped, the endpoint accepts no
/// more associations and aborts those not yet accepted; it keeps serving those that are open.
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    encapsulation: Encapsulation,
    opener: Opener,
    runtime: tokio::runtime::Handle,
    port: u16,
    fingerprint: Option<Fingerprint>,
    announced: Option<Announced>,
}

impl Endpoint {
    /// Binds the sockets and starts the task that drives them in the current tokio runtime, which
    /// must have I/O and time enabled.
    pub fn bind(options: EndpointOptions) -> Result<Self, BindError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| BindError::NoRuntime)?;
        let buffer = options.socket_bytes();
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in options.addresses {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        let port = match options.port {
            0 => ephemeral_port()?,
            port => port,
        };
        if options.encryption.is_some() && options.encapsulation == Encapsulation::RawIp {
            return Err(BindError::RawNotEncrypted);
        }
        let origin = Instant::now();
        let layer = match options.encryption {
            Some(encryption) => {
                let identity = match encryption.identity {
                    Some(identity) => identity,
                    None => Identity::generate()?,
                };
                let mut options =
                    dtls::Options::new(identity, encryption.trust).at_least(encryption.minimum);
                options.unproven = UNPROVEN;
                options.max_connections = encryption.max_connections;
                options.key_log = encryption.key_log;
                Some(Layer::new(options, &random()?, origin.into_std()))
            }
            None => None,
        };
        let fingerprint = layer.as_ref().map(Layer::fingerprint);
        let place = match (options.network, options.shared) {
            (Some(network), _) => Place::Network(network),
            (None, Some(_)) if layer.is_some() => return Err(BindError::SharedNotEncrypted),
            (None, Some(shared)) => Place::Shared(shared),
            (None, None) => Place::System,
        };
        let encapsulation = options.encapsulation;
        let mut opener = Opener { encapsulation, port, buffer, place, owner: None };
        let sockets = opener.open_all(&addresses)?;
        let bound: Vec<SocketAddr> = sockets.iter().map(socket::Socket::local).collect();
        // A peer finds associations by addresses and SCTP ports (RFC 9260 1.3), without the UDP
        // ports. Two endpoints of a host never have the same UDP port; two random SCTP ports may be
        // the same, and an INIT from the second endpoint would restart the first one's association.
        let port = match (options.port, options.encapsulation) {
            (0, Encapsulation::Udp { port: 0 }) => bound[0].port(),
            _ => port,
        };
        let encapsulation = match options.encapsulation {
            Encapsulation::Udp { .. } => proto::Encapsulation::Udp { port: bound[0].port() },
            Encapsulation::RawIp => proto::Encapsulation::RawIp,
        };
        let system = !matches!(opener.place, Place::Network(_));
        // An endpoint that follows the host's addresses announces them when they come.
        let useful = options.announce == Announce::Useful && options.follow_addresses;
        let announce = if useful || !system { Announce::None } else { options.announce };
        let announced = Announced::new(&addresses, announce, options.listen);
        let (listed, sources) = announced.map(Announced::read).unwrap_or_default();
        let config = EndpointConfig {
            listen: options.listen,
            announced: listed,
            sources,
            max_associations: options.max_associations,
            association: options.config,
            routes: match options.announce {
                Announce::All => Arc::new(Preferred(options.routes)),
                _ => options.routes,
            },
            checksum: options.checksum,
            auth_keys: options.auth_keys,
            preferences: options.preferences,
            // DTLS detects corruption and adds overhead to each packet.
            zero_checksum: layer.is_some(),
            overhead: layer.as_ref().map_or(0, Layer::overhead),
            ..EndpointConfig::new(port, addresses, encapsulation)
        };
        let seed = match options.seed {
            Some(seed) => seed,
            None => Seed(random()?),
        };
        opener.port = port;
        if let Encapsulation::Udp { .. } = options.encapsulation {
            opener.encapsulation = Encapsulation::Udp { port: bound[0].port() };
        }
        let shared = Arc::new(Shared::new(proto::Endpoint::new(config, seed), bound, origin));
        let owner = owner(&shared);
        sockets.iter().for_each(|socket| socket.set_owner(owner.clone()));
        opener.owner = Some(owner);
        let secure = layer.map(Secure::new);
        let follow = options.follow_addresses && system;
        let watched = announced.filter(|_| options.listen);
        let locals = Locals::new(sockets, opener.clone(), follow, watched);
        let driver = Driver::new(shared.clone(), locals, secure);
        // The driver bounds its own work per wake-up.
        runtime.spawn(tokio::task::unconstrained(driver));
        Ok(Self(Arc::new(Handle {
            shared,
            encapsulation: options.encapsulation,
            opener,
            runtime,
            port,
            fingerprint,
            announced,
        })))
    }

    /// Begins to open an association and returns at once. Messages given to
    /// [`send`](Association::send) meanwhile are sent with the handshake, a round-trip time earlier
    /// than after [`connect`](Self::connect); [`established`](Association::established) waits for
    /// its end. [`connect_with`](Self::connect_with) does both.
    pub fn open(&self, options: &ConnectOptions) -> Result<Association, ConnectError> {
        self.start(options)
    }

    /// Opens an association and waits until it is established.
    ///
    /// Dropping the future aborts the attempt.
    pub async fn connect(&self, options: ConnectOptions) -> Result<Association, ConnectError> {
        self.start(&options)?.connected().await
    }

    /// Like [`connect`](Self::connect), and sends `first` with the handshake: it arrives a
    /// round-trip time earlier than a message sent afterwards.
    ///
    /// Dropping the future aborts the attempt.
    pub async fn connect_with(
        &self,
        options: ConnectOptions,
        first: Message,
    ) -> Result<Association, ConnectError> {
        let association = self.start(&options)?;
        match association.try_send(first) {
            // A refusal may arrive before the message is queued: `connected` returns the reason.
            Ok(()) | Err(SendError::Closed(_)) => association.connected().await,
            Err(error) => Err(ConnectError::First(error)),
        }
    }

    /// Sends the first packet of a new association.
    fn start(&self, options: &ConnectOptions) -> Result<Association, ConnectError> {
        let shared = &self.0.shared;
        let remotes = options.proto_remotes(self.0.encapsulation);
        let addresses = self.local_addresses();
        let bound = |local: &IpAddr| {
            addresses.iter().any(|bound| {
                let any = bound.ip().is_unspecified() && bound.is_ipv4() == local.is_ipv4();
                any || bound.ip() == *local
            })
        };
        if let Some(local) = remotes.iter().filter_map(|remote| remote.local).find(|l| !bound(l)) {
            return Err(ConnectError::NotBound { local });
        }
        let now = shared.now();
        let announced = self.0.announced.map(Announced::read);
        shared.with(|state| {
            if state.closing {
                return Err(ConnectError::EndpointClosed);
            }
            if let Some((listed, sources)) = announced {
                state.proto.set_announced(listed, sources);
            }
            let id = match &options.config {
                Some(config) => {
                    state.proto.connect_with(now, options.port, &remotes, config.clone())?
                }
                None => state.proto.connect(now, options.port, &remotes)?,
            };
            let entry = state.entries.entry(id).or_insert_with(|| Entry::new(HandleState::Held));
            entry.handle = HandleState::Held;
            let wakes = entry.wakes.clone();
            state.poke();
            Ok(Association::new(shared.clone(), id, wakes))
        })
    }

    /// Waits for the next association opened by a peer; `None` once the endpoint is closed.
    ///
    /// Returns established associations, including those that have closed since then: messages that
    /// they received can still be read. Cancellation-safe.
    pub async fn accept(&self) -> Option<Association> {
        let shared = &self.0.shared;
        loop {
            let incoming = shared.incoming.notified();
            let next = shared.with(|state| {
                while let Some(id) = state.incoming.pop_front() {
                    if let Some(entry) = state.entries.get_mut(&id) {
                        entry.handle = HandleState::Held;
                        let wakes = entry.wakes.clone();
                        return Some(Some(Association::new(shared.clone(), id, wakes)));
                    }
                }
                state.closing.then_some(None)
            });
            if let Some(next) = next {
                return next;
            }
            incoming.await;
        }
    }

    /// Closes the endpoint: no more associations in either direction. Associations not yet accepted
    /// are aborted, and every open one is shut down gracefully. Ready when all of them are over and
    /// the sockets are closed.
    ///
    /// A graceful shutdown first delivers data already sent. To close faster, abort the
    /// associations first. Dropping the future does not cancel the closing.
    pub async fn close(&self) {
        let shared = &self.0.shared;
        let now = shared.now();
        shared.with(|state| {
            state.close(shared);
            for (id, entry) in &mut state.entries {
                if entry.closed.is_none()
                    && !entry.shutting_down
                    && let Some(association) = state.proto.association_mut(*id)
                {
                    entry.shutting_down = true;
                    association.shutdown(now);
                }
            }
        });
        loop {
            let ended = shared.ended.notified();
            if shared.lock().driver_gone {
                return;
            }
            ended.await;
        }
    }

    /// Local addresses with their UDP ports (0 on raw IP), in the order of binding.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.0.shared.lock().locals.clone()
    }

    /// Binds one more address of this host, with the same UDP port (`sctp_bindx` of RFC 6458 9.1).
    /// New associations use it, and so do those that have negotiated dynamic addresses
    /// ([`Config::dynamic_addresses`]).
    ///
    /// [`Config::dynamic_addresses`]: crate::Config::dynamic_addresses
    pub fn add_local_address(&self, address: IpAddr) -> Result<(), BindError> {
        let _in_runtime = self.0.runtime.enter();
        let known = self.local_addresses().iter().any(|local| local.ip() == address);
        let socket = if known { None } else { Some(self.0.opener.open(address)?) };
        let shared = &self.0.shared;
        let now = shared.now();
        shared.with(|state| {
            if let Some(socket) = socket {
                state.locals.push(socket.local());
                state.opened.push(socket);
            }
            state.leaving.retain(|leaving| leaving.address != address);
            state.proto.add_local_address(now, address);
            state.poke();
        });
        Ok(())
    }

    /// Stops using an address (`sctp_bindx` with `SCTP_BINDX_REM_ADDR`). Its socket is closed a
    /// second after the last peer has acknowledged the change; the last address of an association
    /// stays until it has another one.
    pub fn remove_local_address(&self, address: IpAddr) {
        let shared = &self.0.shared;
        let now = shared.now();
        shared.with(|state| {
            if state.proto.config().addresses.contains(&address) {
                state.leaving.push(Leaving { address, until: None });
                state.proto.remove_local_address(now, address);
                state.poke();
            }
        });
    }

    /// SCTP port.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Sets whether the endpoint accepts associations from now on.
    pub fn set_listening(&self, listen: bool) {
        self.0.shared.with(|state| {
            if !state.closing {
                state.proto.set_listening(listen);
            }
        });
    }

    /// An observer of all associations from now on.
    pub fn observe(&self) -> Observer {
        Observer::new(&self.0.shared)
    }

    /// Counters of the protocol.
    pub fn stats(&self) -> EndpointStats {
        self.0.shared.lock().proto.stats()
    }

    /// Counters of the sockets, in the order of [`local_addresses`](Self::local_addresses).
    pub fn socket_stats(&self) -> Vec<SocketStats> {
        self.0.shared.lock().sockets.clone()
    }

    /// Certificate fingerprint by which peers identify this side; `None` without encryption.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.fingerprint
    }

    /// Counters of the DTLS layer, and the number of packets for an association that were encrypted
    /// with a certificate other than its peer's; all 0 without encryption.
    pub fn encryption_stats(&self) -> (dtls::Stats, u64) {
        let state = self.0.shared.lock();
        (state.dtls, state.intruders)
    }

    /// Reason why no encrypted connection with an address was made, if one was refused.
    pub fn refusal(&self, remote: IpAddr) -> Option<Refusal> {
        self.0.shared.lock().refusals.get(&remote).copied()
    }

    /// Time since the endpoint was created: the clock of [`Event`](crate::Event)s.
    pub fn now(&self) -> Time {
        self.0.shared.now()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(|state| state.close(&self.shared));
    }
}

/// Whether a datagram belongs to an association of this endpoint.
fn owner(shared: &Arc<Shared>) -> Owner {
    let shared = Arc::downgrade(shared);
    Arc::new(move |four_tuple, datagram| {
        let Some(shared) = shared.upgrade() else { return false };
        let owner = shared.lock().proto.owner(four_tuple, datagram);
        owner.is_some()
    })
}

fn random<const N: usize>() -> Result<[u8; N], BindError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(BindError::Randomness)?;
    Ok(bytes)
}

/// A port from the dynamic range (RFC 6335 6).
fn ephemeral_port() -> Result<u16, BindError> {
    Ok(0xc000 | u16::from_ne_bytes(random()?))
}
