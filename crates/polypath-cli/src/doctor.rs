//! `polypath doctor`: explains why an association, or one of its paths, does not come up.
//!
//! If several addresses were given, each is tried alone. Then one association over all of them
//! shows the addresses that the peer lists, which paths are confirmed, and whether full-size
//! packets pass.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use polypath::{
    Association, CloseReason, Config, ConnectError, ConnectOptions, ENCRYPTED_ONLY, Endpoint,
    Event, Events, Path, PathId, PathState, Refusal, SocketStats,
};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::leave::leave;
use crate::output::print_line;
use crate::reach::{Reach, Remote};

/// Time for the paths to be confirmed, and for each probe to be answered.
const CONFIRMATION: Duration = Duration::from_secs(4);
const ANSWER: Duration = Duration::from_millis(700);
/// Number of probes of a size before it counts as lost.
const TRIES: usize = 3;
/// Sizes of IP packets in bytes: Ethernet, common tunnels, the IPv6 minimum, and the size that
/// every host accepts.
const SIZES: [u16; 5] = [1500, 1400, 1280, 1000, 576];

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    reach: Reach,
}

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let mut interrupt = Interrupt::new()?;
    tokio::select! {
        failure = interrupt.wait() => Err(failure),
        result = examine(&args.reach) => result,
    }
}

async fn examine(reach: &Reach) -> Result<(), Failure> {
    let remotes = reach.remotes().await?;
    let config = config()?;
    let nothing = || Failure::new(format!("cannot establish an association with {}", reach.host));
    let mut order = remotes.clone();
    if remotes.len() > 1 {
        // Reachable addresses first, so that the handshake does not wait for the others.
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for remote in remotes {
            let asked = ask(reach, &[remote], &config).await;
            tell(remote, &asked)?;
            match asked {
                Ok(asked) => {
                    asked.end().await;
                    good.push(remote);
                }
                Err(_) => bad.push(remote),
            }
        }
        if good.is_empty() {
            return Err(nothing());
        }
        order = [good, bad].concat();
    }
    let asked = ask(reach, &order, &config).await;
    if order.len() == 1 || asked.is_err() {
        tell(order[0], &asked)?;
    }
    let asked = asked.map_err(|_| nothing())?;
    let troubles = look_at_paths(reach, &order, &asked.endpoint, &asked.association).await;
    asked.end().await;
    match troubles? {
        0 => Ok(()),
        1 => Err(Failure::new("1 path has a problem")),
        n => Err(Failure::new(format!("{n} paths have a problem"))),
    }
}

/// Reports the result of an attempt to connect.
fn tell(remote: Remote, asked: &Result<Asked, String>) -> Result<(), Failure> {
    let address = remote.0.ip();
    match asked {
        Ok(asked) => print_line(format_args!(
            "{address}: answers, after {:.1} ms, {}",
            1e3 * asked.took.as_secs_f64(),
            match asked.association.peer() {
                Some(peer) => format!("encrypted, fingerprint {}", peer.short()),
                None => "in clear".to_owned(),
            }
        )),
        Err(why) => print_line(format_args!("{address}: {why}")),
    }
}

/// An association that was established.
struct Asked {
    endpoint: Endpoint,
    association: Association,
    took: Duration,
}

impl Asked {
    async fn end(self) {
        let _ = tokio::time::timeout(Duration::from_secs(2), self.association.shutdown()).await;
        leave(&self.endpoint, self.association).await;
    }
}

/// Detects failures quickly, but keeps trying for long. By the policies of RFC 9260 a path sends no
/// HEARTBEATs in a row of its own, whose answers would count as those of the probes.
fn config() -> Result<Config, Failure> {
    let ms = Duration::from_millis;
    Config::rfc9260()
        .to_builder()
        .rto_initial(ms(500))
        .rto_min(ms(300))
        .rto_max(ms(1000))
        .max_init_retransmits(4)
        .path_max_retrans(1000)
        .association_max_retrans(10_000)
        .build()
        .map_err(|error| Failure::new(error.to_string()))
}

/// Opens an association with these addresses; the error explains the failure.
async fn ask(reach: &Reach, remotes: &[Remote], config: &Config) -> Result<Asked, String> {
    let endpoint = reach.bind(remotes, config.clone()).map_err(|failure| failure.reason())?;
    let options = ConnectOptions { port: reach.port, remotes: remotes.to_vec(), config: None };
    let began = tokio::time::Instant::now();
    let result = tokio::time::timeout(reach.patience(), endpoint.connect(options)).await;
    let took = began.elapsed();
    let stats = endpoint.socket_stats();
    match result {
        Ok(Ok(association)) => Ok(Asked { endpoint, association, took }),
        Ok(Err(error)) => Err(refusal(reach, remotes[0], &error, &stats)),
        Err(_) => Err(silence(reach, remotes[0], &stats)),
    }
}

/// Explains a refused connection.
fn refusal(reach: &Reach, remote: Remote, error: &ConnectError, stats: &[SocketStats]) -> String {
    match error {
        ConnectError::Closed(CloseReason::NoAnswer) => silence(reach, remote, stats),
        ConnectError::Closed(CloseReason::Unreachable { .. }) if refused(stats) => {
            silence(reach, remote, stats)
        }
        ConnectError::Closed(CloseReason::Unreachable { what }) => {
            format!("the network reports (by ICMP, or this host's routing): {what}")
        }
        ConnectError::Closed(CloseReason::PeerAbort { cause }) if cause.is_empty() => format!(
            "an SCTP stack answers with ABORT and no cause: nothing listens on SCTP port {}",
            reach.port
        ),
        ConnectError::Closed(CloseReason::PeerAbort { cause })
            if cause.contains(ENCRYPTED_ONLY) =>
        {
            "answers, but accepts only encrypted connections: omit --plain, or pass it there as well"
                .to_owned()
        }
        ConnectError::Closed(CloseReason::PeerAbort { cause }) => {
            format!("an SCTP stack answers with ABORT: {cause}")
        }
        ConnectError::Refused(Refusal::Plain) => {
            "answers, but does not encrypt: pass --plain, or omit it there".to_owned()
        }
        ConnectError::Refused(Refusal::Version) => {
            "answers, but has no DTLS 1.3: --min-dtls 1.2 accepts the older version".to_owned()
        }
        ConnectError::Refused(why) => format!("answers, but the encryption fails: {why}"),
        error => error.to_string(),
    }
}

/// Whether the operating system refused to send a datagram.
fn refused(stats: &[SocketStats]) -> bool {
    stats.iter().any(|socket| socket.datagrams_refused > 0)
}

fn silence(reach: &Reach, remote: Remote, stats: &[SocketStats]) -> String {
    let what = if reach.raw {
        "IP protocol 132".to_owned()
    } else {
        format!("UDP port {}", remote.0.port())
    };
    if refused(stats) {
        return "this host cannot send the packets: no route, interface down, or a local \
                firewall"
            .to_owned();
    }
    format!(
        "no answer and no error: a firewall drops {what}, or the host is down, or another program \
         uses that port{}",
        if reach.raw || reach.encryption.plain { "" } else { ", or it does not encrypt (--plain)" }
    )
}

/// Waits for the paths to be confirmed and reports the problems of each; returns the number of
/// paths with problems.
async fn look_at_paths(
    reach: &Reach,
    remotes: &[Remote],
    endpoint: &Endpoint,
    association: &Association,
) -> Result<usize, Failure> {
    let mut events = association.events();
    let mut refused = BTreeSet::new();
    let end = tokio::time::Instant::now() + CONFIRMATION;
    while association.paths().iter().any(|path| path.view.state == PathState::Unconfirmed)
        && tokio::time::Instant::now() < end
    {
        note_refusals(&mut events, &mut refused).await;
    }
    let mut troubles = 0;
    for path in association.paths() {
        let view = &path.view;
        let name = format!("path {} to {}", from(view.local), view.remote);
        let mut lines = Vec::new();
        let works = view.state == PathState::Active;
        if works {
            let rtt = view.srtt.map_or(0.0, |rtt| 1e3 * rtt.as_secs_f64());
            lines.push(format!("{name}: works, round trip {rtt:.1} ms"));
            troubles += usize::from(!sizes(association, view.id, &mut lines).await);
        } else {
            troubles += 1;
            let stats = socket_of(endpoint, view.local);
            let why = match endpoint.refusal(view.remote) {
                Some(why) => format!("not encrypted: {why}"),
                None => unconfirmed(&path, &refused, stats),
            };
            lines.push(format!("{name}: {why}"));
        }
        if works && !reach.raw && view.remote_port != asked_port(remotes, view.remote) {
            lines.push(format!(
                "  its replies come from UDP port {}: a NAT on the path changes ports",
                view.remote_port
            ));
        }
        for line in lines {
            print_line(line)?;
        }
    }
    Ok(troubles)
}

fn from(local: IpAddr) -> String {
    if local.is_unspecified() { String::from("from this host") } else { format!("from {local}") }
}

async fn note_refusals(events: &mut Events, refused: &mut BTreeSet<PathId>) {
    let next = tokio::time::timeout(Duration::from_millis(50), events.next()).await;
    if let Ok(Ok(Event::PathRefused { path })) = next {
        refused.insert(path);
    }
}

fn socket_of(endpoint: &Endpoint, local: IpAddr) -> SocketStats {
    let addresses = endpoint.local_addresses();
    let found =
        addresses.iter().zip(endpoint.socket_stats()).find(|(address, _)| address.ip() == local);
    found.map(|(_, stats)| stats).unwrap_or_default()
}

/// The UDP port that was contacted: the one given with the address, or that of the first address.
fn asked_port(remotes: &[Remote], address: IpAddr) -> u16 {
    let given = remotes.iter().find(|(remote, _)| remote.ip() == address);
    given.unwrap_or(&remotes[0]).0.port()
}

/// Explains why a path is not confirmed.
fn unconfirmed(path: &Path, refused: &BTreeSet<PathId>, stats: SocketStats) -> String {
    let sent = path.stats.heartbeats_sent;
    let why = if refused.contains(&path.view.id) {
        "the peer replied with ABORT: it does not know the address from which it received them (a NAT \
         on the path, or a stack that learns no addresses)"
    } else if stats.datagrams_refused > 0 {
        "this host cannot send the packets (no route, interface down, or a local firewall)"
    } else if stats.icmp_errors > 0 {
        "the network replied with ICMP errors (no route, or nothing listens there)"
    } else if is_private(path.view.remote) {
        "no reply arrived; the peer lists this private address, and may be behind a NAT"
    } else {
        "no reply arrived (a firewall, a broken link, or no route back)"
    };
    format!("not confirmed: {sent} heartbeats were sent and {why}")
}

const fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Reports which packet sizes pass; false if not all that the path MTU allows do.
async fn sizes(association: &Association, path: PathId, lines: &mut Vec<String>) -> bool {
    for size in SIZES {
        if !passes(association, path, size).await {
            continue;
        }
        if size == SIZES[0] {
            lines.push(format!("  packets of {size} bytes pass"));
            return true;
        }
        lines.push(format!(
            "  packets of {size} bytes pass, larger ones vanish: an MTU black hole; \
             --config path_mtu={size} at both ends avoids it"
        ));
        return false;
    }
    lines.push("  no packet of a useful size passes".to_owned());
    false
}

/// Whether a HEARTBEAT of this size is acknowledged.
async fn passes(association: &Association, path: PathId, size: u16) -> bool {
    let answered = || {
        let paths = association.paths();
        paths.get(path.index()).map_or(0, |path| path.stats.heartbeats_acked)
    };
    let before = answered();
    for _ in 0..TRIES {
        if association.probe(path, size).is_err() {
            return false;
        }
        let end = tokio::time::Instant::now() + ANSWER;
        while tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if answered() > before {
                return true;
            }
        }
    }
    false
}
