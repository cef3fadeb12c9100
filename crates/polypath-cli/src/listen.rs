//! Options and state of the commands that accept connections: sockets, and which peers are let in.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use polypath::{
    Config, Encapsulation, Endpoint, EndpointOptions, KnownFingerprint, Trust, UDP_PORT,
};
use polypath_apps::accept::{Acceptor, Peer};
use polypath_apps::consent::{Door, Phrase, Service};
use polypath_apps::error::Error;
use tokio::time::Instant;

use crate::auth_key;
use crate::code;
use crate::failure::Failure;
use crate::known_hosts;
use crate::local;
use crate::observe::{Observe, Vantage};
use crate::reach::seconds;
use crate::reason;
use crate::role::SCTP_PORT;
use crate::trust;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Addresses")]
pub(crate) struct Listen {
    /// Local addresses to receive on [default: all IPv4 addresses]
    ///
    /// Addresses that are listed here are announced to the peer, and each can become a path.
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',')]
    bind: Vec<IpAddr>,
    /// Announce addresses that this host gains or loses to the peer
    #[arg(long)]
    follow_addresses: bool,
    /// SCTP port
    #[arg(short, long, default_value_t = SCTP_PORT, value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true)]
    port: u16,
    /// UDP port; 0 picks a free port
    #[arg(short, long, default_value_t = UDP_PORT)]
    udp_port: u16,
    /// Receive IP protocol 132 instead of UDP (needs CAP_NET_RAW)
    #[arg(long, hide_short_help = true)]
    pub(crate) raw: bool,
    /// Seconds to wait for a peer's first message after it has connected
    ///
    /// If data waits for the paths to be confirmed (path_confirmation=before-data), broken paths
    /// use up some of that time.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds, hide_short_help = true)]
    timeout: f64,
    #[command(flatten)]
    door: DoorOptions,
    #[command(flatten)]
    pub(crate) encryption: trust::Options,
    #[command(flatten)]
    authentication: auth_key::KeyOptions,
    #[command(flatten)]
    observe: Observe,
}

/// Options that decide which peers are let in.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Consent")]
struct DoorOptions {
    /// Read the code phrase from the first line of this file [default: a random one]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["psk", "psk_file", "anyone"])]
    code_file: Option<PathBuf>,
    /// Accept the peer with this fingerprint without a code phrase; may be repeated
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "plain")]
    from: Vec<KnownFingerprint>,
    /// Accept any peer without a code phrase
    #[arg(long, conflicts_with_all = ["psk", "psk_file", "from"])]
    anyone: bool,
    /// Store the fingerprints of peers that prove the code phrase, to accept them without one
    #[arg(long)]
    remember: bool,
    /// Accept at most this many connections at a time from one address
    ///
    /// In IPv6, a network of 64 bits counts as one address.
    #[arg(long, value_name = "NUMBER", default_value_t = 16, hide_short_help = true)]
    per_address: usize,
}

/// Maximum number of associations, with those that are not yet accepted.
const MOST: usize = 4096;
/// Most lines about refused peers in [`LINES_TIME`]: anyone can cause them.
const LINES: u32 = 20;
const LINES_TIME: Duration = Duration::from_secs(10);

/// A command's sockets and its door.
pub(crate) struct Listener {
    pub(crate) endpoint: Endpoint,
    pub(crate) acceptor: Acceptor,
    service: Service,
    door: Arc<Door>,
    /// Phrases are made up here, and each is good for one peer.
    makes_phrases: bool,
    remember: bool,
    quiet: bool,
    /// Lines about refused peers since this time.
    lines: (Instant, u32),
    outdated: u64,
}

impl Listen {
    /// Binds the sockets, prints the addresses and the phrase, and starts to accept.
    pub(crate) fn open(
        &self,
        config: Config,
        service: Service,
        quiet: bool,
    ) -> Result<Listener, Failure> {
        let addresses = if !self.bind.is_empty() {
            self.bind.clone()
        } else if self.follow_addresses {
            local::any_of_each_family()?
        } else {
            vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)]
        };
        let encapsulation = if self.raw {
            Encapsulation::RawIp
        } else {
            Encapsulation::Udp { port: self.udp_port }
        };
        let (door, shown) = self.door(service)?;
        // Strangers are refused before they have an association, if no phrase could admit them.
        let trust = match &self.door.from[..] {
            [] => Trust::Anyone,
            _ if self.door.code_file.is_some() || self.encryption.has_secret() => Trust::Anyone,
            from => Trust::Known(from.to_vec()),
        };
        let endpoint = local::bind(EndpointOptions {
            addresses,
            port: self.port,
            encapsulation,
            listen: true,
            max_associations: MOST,
            follow_addresses: self.follow_addresses,
            config: self.authentication.demand(config)?,
            auth_keys: self.authentication.keys()?,
            encryption: self.encryption.encryption(self.raw, trust)?,
            ..EndpointOptions::default()
        })?;
        self.observe.watch(&endpoint, Vantage::Server)?;
        if !quiet {
            self.announce(&endpoint);
        }
        if let Some(phrase) = &shown {
            eprintln!("code phrase {phrase}");
        }
        let patience = Duration::from_secs_f64(self.timeout);
        let per_address = self.door.per_address;
        let acceptor =
            Acceptor::start(endpoint.clone(), service, door.clone(), per_address, patience);
        Ok(Listener {
            endpoint,
            acceptor,
            service,
            door,
            makes_phrases: shown.is_some(),
            remember: self.door.remember,
            quiet,
            lines: (Instant::now(), 0),
            outdated: 0,
        })
    }

    /// Which peers to let in, and the phrase to show.
    fn door(&self, service: Service) -> Result<(Arc<Door>, Option<Phrase>), Failure> {
        if self.door.anyone {
            eprintln!("warning: --anyone accepts every peer that reaches this host");
            return Ok((Arc::new(Door::open()), None));
        }
        let mut known = self.door.from.clone();
        if let Some(secret) = self.encryption.secret()? {
            return Ok((Arc::new(Door::new(known, Some(secret))), None));
        }
        known.extend(self.encryption.fingerprint.clone());
        let chosen = !known.is_empty();
        if !(self.raw || self.encryption.plain) {
            known.extend(known_hosts::peers(service.name)?);
        }
        if let Some(path) = &self.door.code_file {
            return Ok((Arc::new(Door::new(known, Some(code::read(path)?))), None));
        }
        if chosen {
            return Ok((Arc::new(Door::new(known, None)), None));
        }
        let phrase = new_phrase()?;
        Ok((Arc::new(Door::new(known, Some(phrase.clone())).once()), Some(phrase)))
    }

    /// Prints the addresses and ports in use: scripts that request any free port need them.
    fn announce(&self, endpoint: &Endpoint) {
        let addresses: Vec<String> =
            endpoint.local_addresses().iter().map(|address| address.ip().to_string()).collect();
        let below = match endpoint.local_addresses()[..] {
            [first, ..] if !self.raw => format!("UDP port {}", first.port()),
            _ => "IP protocol 132".to_owned(),
        };
        eprintln!("waiting on {}, {below}, SCTP port {}", addresses.join(", "), endpoint.port());
        match endpoint.fingerprint() {
            Some(fingerprint) => eprintln!("encrypted, fingerprint {}", fingerprint.short()),
            None => eprintln!("in clear"),
        }
    }
}

fn new_phrase() -> Result<Phrase, Failure> {
    Phrase::random().map_err(|error| Failure::new(error.to_string()))
}

impl Listener {
    /// Reports a peer that was let in. `renew` is whether another one may follow.
    pub(crate) fn accepted(&self, peer: &Peer, renew: bool) -> Result<(), Failure> {
        let fingerprint = peer.association.peer();
        if let (Some(fingerprint), false) = (fingerprint, self.quiet) {
            eprintln!("connected with {}, fingerprint {}", peer.address, fingerprint.short());
        }
        if !peer.consent.proved {
            return Ok(());
        }
        if let (Some(fingerprint), true) = (fingerprint, self.remember) {
            let comment = peer.address.to_string();
            if let Err(failure) = known_hosts::add_peer(self.service.name, fingerprint, &comment) {
                // The peer has proved the phrase all the same.
                eprintln!("warning: {}", failure.reason());
            }
        }
        if self.makes_phrases && renew {
            let phrase = new_phrase()?;
            if self.door.renew(&phrase) {
                eprintln!("code phrase {phrase}");
            }
        }
        Ok(())
    }

    /// Reports a refused peer, unless there are too many of them.
    pub(crate) fn refused(&mut self, peer: IpAddr, error: &Error) {
        let now = Instant::now();
        if now.duration_since(self.lines.0) >= LINES_TIME {
            self.lines = (now, 0);
        }
        self.lines.1 += 1;
        match self.lines.1 {
            ..=LINES => {
                let error = match error {
                    Error::Local(reason) => Error::Local(format!("{peer} was refused: {reason}")),
                    error => error.clone(),
                };
                eprintln!("{}", reason::ended(&peer.to_string(), &error));
            }
            count if count == LINES + 1 => eprintln!("further refused peers are not listed"),
            _ => {}
        }
    }

    /// Reports that peers were refused for their DTLS version. Reports only the first one, because
    /// anyone can send ClientHellos.
    pub(crate) fn note_outdated(&mut self) {
        let (stats, _) = self.endpoint.encryption_stats();
        if stats.outdated > 0 && self.outdated == 0 {
            eprintln!(
                "a peer without DTLS 1.3 was refused; --min-dtls 1.2 accepts the older version"
            );
        }
        self.outdated = stats.outdated;
    }
}
