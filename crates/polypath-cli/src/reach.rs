//! Reaches a peer: the options of the commands that connect.

use std::convert::Infallible;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use polypath::{
    Association, CloseReason, Config, ConnectError, ConnectOptions, Encapsulation, Endpoint,
    EndpointOptions, Event, EventsError, Message, PathState, Refusal, SystemRoutes, Trust,
    UDP_PORT,
};

use crate::auth_key;
use crate::failure::Failure;
use crate::known_hosts::KnownHosts;
use crate::leave::leave;
use crate::local;
use crate::metered::{self, Metered};
use crate::observe::{Observe, Vantage};
use crate::peer::PeerAddress;
use crate::reason;
use crate::role::SCTP_PORT;
use crate::trust;

/// An address of the peer, and the local address to reach it from.
pub(crate) type Remote = (SocketAddr, Option<IpAddr>);

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Addresses")]
pub(crate) struct Reach {
    /// Name or address of the peer
    ///
    /// It may be followed by the peer's UDP port and by the local address to send from, for example
    /// 192.0.2.7:9899=10.0.0.1. IPv6 addresses with a port are in brackets.
    #[arg(help_heading = None::<&'static str>, value_name = "HOST[:UDPPORT][=LOCAL]")]
    pub(crate) host: PeerAddress,
    /// Further addresses of the peer, each a path
    #[arg(long, value_name = "ADDR[:UDPPORT][=LOCAL]", value_delimiter = ',')]
    pub(crate) via: Vec<PeerAddress>,
    /// Use this address of the peer as the primary path [default: HOST]
    #[arg(long, value_name = "ADDR", hide_short_help = true)]
    pub(crate) primary: Option<IpAddr>,
    /// Local addresses to send from [default: those that reach the peer]
    #[arg(short, long, value_name = "LOCAL", value_delimiter = ',')]
    pub(crate) bind: Vec<IpAddr>,
    /// Use this interface or local address only while no other works
    ///
    /// It carries an amount, as in wwan0=500MB, in any case. May be repeated.
    #[arg(long, value_name = "INTERFACE[=SIZE]", value_parser = Metered::read)]
    pub(crate) metered: Vec<Metered>,
    /// Use addresses that this host gains, and survive the loss of those in use
    #[arg(long)]
    pub(crate) follow_addresses: bool,
    /// SCTP port of the peer
    #[arg(short, long, default_value_t = SCTP_PORT, hide_short_help = true)]
    pub(crate) port: u16,
    /// UDP port of the peer
    #[arg(short, long, default_value_t = UDP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) udp_port: u16,
    /// Local UDP port [default: any free port]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true,
        hide_short_help = true
    )]
    pub(crate) local_udp_port: u16,
    /// Send IP protocol 132 instead of UDP (needs CAP_NET_RAW)
    #[arg(long, hide_short_help = true)]
    pub(crate) raw: bool,
    /// Seconds to wait for the connection
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0, value_parser = seconds, hide_short_help = true)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) encryption: trust::Options,
    #[command(flatten)]
    pub(crate) authentication: auth_key::KeyOptions,
    #[command(flatten)]
    pub(crate) observe: Observe,
}

/// Addresses of the peer that have answered: others are only what the peer lists.
fn active(association: &Association) -> Vec<IpAddr> {
    let paths = association.paths();
    let active = paths.iter().filter(|path| path.view.state == PathState::Active);
    active.map(|path| path.view.remote).collect()
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(seconds),
        _ => Err("expected a number of seconds above 0".to_owned()),
    }
}

impl Reach {
    /// Opens an association; `first` is sent with the handshake.
    pub(crate) async fn connect(
        &self,
        config: Config,
        first: Message,
    ) -> Result<(Endpoint, Association), Failure> {
        let remotes = self.remotes().await?;
        let endpoint = self.bind(&remotes, config)?;
        let udp_port = (!self.raw).then(|| remotes[0].0.port());
        let host = self.host.to_string();
        let options = ConnectOptions { port: self.port, remotes: remotes.clone(), config: None };
        let connecting = endpoint.connect_with(options, first);
        let error = match tokio::time::timeout(self.patience(), connecting).await {
            Ok(Ok(association)) => {
                if let Err(failure) = self.authentication.check(&host, &association) {
                    association.abort(failure.reason());
                    leave(&endpoint, association).await;
                    return Err(failure);
                }
                return Ok((endpoint, association));
            }
            Ok(Err(error)) => error,
            Err(_) => ConnectError::Closed(CloseReason::NoAnswer),
        };
        let failure = reason::connect(&host, udp_port, self.port, &error);
        Err(match error {
            ConnectError::Closed(CloseReason::NoAnswer)
                if endpoint.stats().datagrams_received > 0 =>
            {
                self.authentication.unanswered(&host)
            }
            ConnectError::Refused(Refusal::Certificate { .. }) => self.whom_instead(failure),
            _ => failure,
        })
    }

    /// Whether the host has been connected to before; `None` if known hosts do not decide.
    pub(crate) fn is_known(&self, association: &Association) -> Result<Option<bool>, Failure> {
        if association.peer().is_none() || !self.encryption.asks_known_hosts(self.raw) {
            return Ok(None);
        }
        let names = self.names(&active(association));
        let known = KnownHosts::open()?.find(&names, self.host_port())?;
        Ok(Some(known.zip(association.peer()).is_some_and(|(known, peer)| known.matches(&peer))))
    }

    /// Stores the host's fingerprint under its name and all addresses that it has answered from.
    pub(crate) fn remember(&self, association: &Association) -> Result<(), Failure> {
        let Some(peer) = association.peer() else { return Ok(()) };
        let names = self.names(&active(association));
        KnownHosts::open()?.add(&names, self.host_port(), peer)
    }

    /// Adds the addresses that answer later, as they do: a path may need longer than consent does.
    /// Never ends.
    pub(crate) async fn remember_more(&self, association: &Association) -> Infallible {
        let mut events = association.events();
        loop {
            if self.encryption.asks_known_hosts(self.raw) {
                // The host is known already; the next command tries again.
                let _ = self.remember(association);
            }
            loop {
                match events.next().await {
                    Ok(Event::PathState { to: PathState::Active, .. })
                    | Err(EventsError::Lagged { .. }) => break,
                    Ok(_) => {}
                    Err(_) => pending().await,
                }
            }
        }
    }

    fn host_port(&self) -> u16 {
        self.host.port().unwrap_or(self.udp_port)
    }

    /// The name of the host as written, and its addresses.
    fn names(&self, addresses: &[IpAddr]) -> Vec<String> {
        let mut names = vec![self.host.to_string()];
        for address in addresses.iter().map(IpAddr::to_string) {
            if !names.contains(&address) {
                names.push(address);
            }
        }
        names
    }

    /// Adds a hint about an unexpected certificate.
    fn whom_instead(&self, failure: Failure) -> Failure {
        if !self.encryption.asks_known_hosts(self.raw) {
            return failure.hint("pass the fingerprint that the peer prints to --fingerprint");
        }
        let path = KnownHosts::open().map(|hosts| hosts.path().display().to_string());
        failure.hint(format!(
            "another host may be intercepting the connection. If the host was reinstalled and prints \
             this fingerprint itself, remove its line from {}",
            path.unwrap_or_default()
        ))
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }

    /// An endpoint bound to the local addresses that reach `remotes`.
    pub(crate) fn bind(&self, remotes: &[Remote], config: Config) -> Result<Endpoint, Failure> {
        let encapsulation = if self.raw {
            Encapsulation::RawIp
        } else {
            Encapsulation::Udp { port: self.local_udp_port }
        };
        let port = remotes[0].0.port();
        let known = match self.encryption.asks_known_hosts(self.raw) {
            true => {
                let addresses: Vec<IpAddr> =
                    remotes.iter().map(|(remote, _)| remote.ip()).collect();
                KnownHosts::open()?.find(&self.names(&addresses), port)?
            }
            false => None,
        };
        let trust = known.map_or(Trust::Anyone, |known| Trust::Known(vec![known]));
        let encryption = self.encryption.encryption(self.raw, trust)?;
        let endpoint = local::bind(EndpointOptions {
            addresses: self.local_addresses(remotes)?,
            port: 0,
            encapsulation,
            follow_addresses: self.follow_addresses,
            config: self.authentication.demand(config)?,
            auth_keys: self.authentication.keys()?,
            preferences: metered::preferences(&self.metered)?,
            encryption,
            ..EndpointOptions::default()
        })?;
        self.observe.watch(&endpoint, Vantage::Client)?;
        Ok(endpoint)
    }

    /// All addresses of the peer, the primary one first.
    pub(crate) async fn remotes(&self) -> Result<Vec<Remote>, Failure> {
        let mut remotes: Vec<Remote> = Vec::new();
        // A name may resolve to addresses of a family that this host does not have.
        let usable = |address: IpAddr| {
            if self.bind.is_empty() {
                SystemRoutes::source_towards(address).is_some()
            } else {
                self.bind.iter().any(|local| local.is_ipv4() == address.is_ipv4())
            }
        };
        for peer in std::iter::once(&self.host).chain(&self.via) {
            let address = peer.resolve(self.udp_port, usable).await?;
            if remotes.iter().all(|(known, _)| known.ip() != address.ip()) {
                remotes.push((address, peer.local()));
            }
        }
        if let Some(primary) = self.primary {
            let index = remotes.iter().position(|(remote, _)| remote.ip() == primary);
            let Some(index) = index else {
                let known: Vec<String> =
                    remotes.iter().map(|(remote, _)| remote.ip().to_string()).collect();
                return Err(Failure::usage(format!(
                    "--primary {primary} is not one of the peer's addresses"
                ))
                .hint(format!("allowed: {}", known.join(", "))));
            };
            remotes[..=index].rotate_right(1);
        }
        Ok(remotes)
    }

    /// The addresses to bind: the requested ones, or all of the host of the peer's families, which
    /// the endpoint pairs with those of the peer. An endpoint that follows the host's addresses, or
    /// speaks SCTP over IP, begins with the source addresses of the routes to the peer.
    fn local_addresses(&self, remotes: &[Remote]) -> Result<Vec<IpAddr>, Failure> {
        let mut addresses = self.bind.clone();
        let chosen = !self.bind.is_empty() || remotes.iter().any(|(_, local)| local.is_some());
        if !chosen && !self.follow_addresses && !self.raw {
            let any = |v4| remotes.iter().any(|(remote, _)| remote.is_ipv4() == v4);
            addresses.extend(any(true).then_some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
            addresses.extend(any(false).then_some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
            return Ok(addresses);
        }
        for (remote, local) in remotes {
            match local {
                Some(local) => addresses.push(*local),
                None if self.bind.is_empty() => {
                    addresses.extend(SystemRoutes::source_towards(remote.ip()));
                }
                None => {}
            }
        }
        if addresses.is_empty() {
            return Err(Failure::new(format!(
                "cannot connect to {}: no route to {}",
                self.host,
                remotes[0].0.ip()
            ))
            .hint("is the network up?"));
        }
        Ok(addresses)
    }
}
