//! This stack's peer for the interoperability tests: an endpoint that reads commands on stdin and
//! reports events on stdout. The peers on other stacks use the same commands (`tests/interop`).
//!
//! ```text
//! peer listen|connect LOCAL[,LOCAL] PORT REMOTE[,REMOTE]|- UDP|- REMOTE_UDP|- OPTION...
//! ```
//! UDP ports are those of RFC 6951 (`-`: IP protocol 132). Options: `brisk` detects failures within
//! a second, `mtu=BYTES` sets the path MTU, `offer=ANSWER` sets the policy `rtt_sampling` to offer,
//! `reconfig` offers stream reconfiguration, `auth` requires authenticated DATA and sets a shared
//! key, `move` offers dynamic addresses, `pmtud` enables path MTU discovery, `ecn` offers ECN, `pr`
//! partial reliability, `interleave` user message interleaving, `nrsack` NR-SACK, `ack=ANSWER` sets
//! the acknowledgement policy. `dtls` encrypts with DTLS 1.2 or newer: the peer prints its
//! fingerprint and waits for `expect FINGERPRINT`.
//!
//! Commands: `send COUNT SIZE STREAMS ordered|unordered|mixed
//! [lifetime=MS|retransmissions=N|prompt]`, `totals`, `limited`, `paths`, `shutdown`, `abort`,
//! `bind IP`, `unbind IP`, `primary IP`, `reset outgoing|incoming|association`, `add OUTGOING
//! INCOMING`.

mod tally;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polypath::proto::Registry;
use polypath::proto::policy::{find, stream_scheduler};
use polypath::proto::wire::chunk_type;
use polypath::{
    Association, AuthKeys, ChunkTypes, CloseReason, Config, ConnectOptions, Encapsulation,
    Encryption, Endpoint, EndpointOptions, Event, Identity, Message, Path, PathState, Ppid,
    Reconfigured, Reliability, StreamId, StreamReset, Trust, Version,
};
use tally::Tally;
use tokio::sync::mpsc;

type Failure = Box<dyn Error + Send + Sync>;

/// Parsed command line.
struct Plan {
    listens: bool,
    locals: Vec<IpAddr>,
    port: u16,
    remotes: Vec<IpAddr>,
    encapsulation: Encapsulation,
    remote_udp: u16,
    config: Config,
    keys: AuthKeys,
    encryption: Option<Encryption>,
}

impl Plan {
    fn read() -> Result<Self, Failure> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let [role, locals, port, remotes, udp, remote_udp, options @ ..] = &words[..] else {
            return Err(
                "usage: peer listen|connect LOCALS PORT REMOTES UDP REMOTE_UDP OPTION...".into()
            );
        };
        let addresses = |list: &str| -> Result<Vec<IpAddr>, Failure> {
            let list = list.split(',').filter(|ip| *ip != "-");
            Ok(list.map(str::parse).collect::<Result<_, _>>()?)
        };
        Ok(Self {
            listens: role == "listen",
            locals: addresses(locals)?,
            port: port.parse()?,
            remotes: addresses(remotes)?,
            encapsulation: match udp.as_str() {
                "-" => Encapsulation::RawIp,
                port => Encapsulation::Udp { port: port.parse()? },
            },
            remote_udp: if remote_udp == "-" { 0 } else { remote_udp.parse()? },
            config: config(options)?,
            keys: keys(options)?,
            encryption: match options.iter().any(|option| option == "dtls") {
                true => Some(introduce()?),
                false => None,
            },
        })
    }
}

/// Exchanges fingerprints through stdin and stdout, as WebRTC does by signalling (RFC 8827 5).
fn introduce() -> Result<Encryption, Failure> {
    let identity = Identity::generate()?;
    println!("fingerprint sha256={}", identity.fingerprint());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let known = line.trim().strip_prefix("expect ").ok_or("no fingerprint to expect")?;
    let trust = Trust::Known(vec![known.parse()?]);
    Ok(Encryption { minimum: Version::Dtls12, ..Encryption::new(identity, trust) })
}

/// With `auth`, a key shared by both peers.
fn keys(options: &[String]) -> Result<AuthKeys, Failure> {
    let mut keys = AuthKeys::default();
    if options.iter().any(|option| option == "auth") {
        keys.set(7, b"interoperability")?;
        keys.activate(7)?;
    }
    Ok(keys)
}

fn config(options: &[String]) -> Result<Config, Failure> {
    let ms = Duration::from_millis;
    let mut builder = Config::builder().receive_buffer(4 << 20).send_buffer(4 << 20);
    for option in options {
        builder = match option.split_once('=').unwrap_or((option, "")) {
            ("brisk", "") => builder
                .rto_initial(ms(400))
                .rto_min(ms(200))
                .rto_max(ms(1000))
                .path_max_retrans(1)
                .heartbeat_interval(Some(ms(500))),
            ("interleave", "") => {
                builder.interleaving(true).stream_scheduler(&stream_scheduler::ROUND_ROBIN)
            }
            ("mtu", bytes) => builder.path_mtu(bytes.parse()?),
            ("dtls", "") => builder,
            ("pmtud", "") => builder.path_mtu_discovery(true),
            ("ecn", "") => builder.ecn(true),
            ("auth", "") => {
                let data = ChunkTypes::authenticated(&[chunk_type::DATA]);
                builder.authentication(true).authenticated_chunks(data)
            }
            ("move", "") => builder.authentication(true).dynamic_addresses(true),
            ("pr", "") => builder.partial_reliability(true),
            ("ack", name) => {
                let policy = find(Registry::standard().ack(), name);
                builder.ack(policy.ok_or_else(|| format!("no policy {name:?}"))?)
            }
            ("nrsack", "") => builder.nr_sack(true),
            ("adaptation", number) => builder.adaptation_layer(Some(number.parse()?)),
            ("reconfig", "") => builder.stream_reconfiguration(true),
            ("offer", name) => {
                let policy = find(Registry::standard().rtt_sampling(), name);
                builder.rtt_sampling(policy.ok_or_else(|| format!("no policy {name:?}"))?)
            }
            _ => return Err(format!("no option {option:?}").into()),
        };
    }
    Ok(builder.build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let plan = Plan::read()?;
    let endpoint = Endpoint::bind(EndpointOptions {
        addresses: plan.locals,
        port: plan.port,
        encapsulation: plan.encapsulation,
        listen: plan.listens,
        config: plan.config,
        auth_keys: plan.keys,
        encryption: plan.encryption,
        ..EndpointOptions::plain()
    })?;
    let association = if plan.listens {
        println!("ready");
        endpoint.accept().await.ok_or("the endpoint ended")?
    } else {
        let remotes = plan.remotes.iter().map(|ip| SocketAddr::new(*ip, plan.remote_udp));
        match endpoint.connect(ConnectOptions::new(plan.port, remotes)).await {
            Ok(association) => association,
            Err(error) => {
                println!("end reason=refused words={error}");
                return Ok(());
            }
        }
    };
    println!("up");
    if let Some(indication) = association.peer_adaptation_layer() {
        println!("adaptation indication={indication}");
    }
    let received = Arc::new(Mutex::new(Tally::new()));
    tokio::spawn(watch(association.clone()));
    let reading = tokio::spawn(receive(association.clone(), received.clone()));
    let commands = obey(endpoint.clone(), association.clone(), received);
    let obeying = tokio::spawn(async move {
        if let Err(error) = commands.await {
            println!("failed {error}");
        }
    });
    let reason = association.closed().await;
    obeying.abort();
    reading.await?;
    match reason {
        CloseReason::Graceful => println!("end reason=graceful"),
        reason => println!("end reason=lost words={reason}"),
    }
    drop(association);
    // Send the last packets.
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.close()).await;
    Ok(())
}

/// Prints the events of the association.
async fn watch(association: Association) {
    let mut events = association.events();
    while let Ok(event) = events.next().await {
        match event {
            Event::Restarted => println!("restart"),
            Event::PathState { path, to, .. } => {
                if let Some(path) = association.paths().get(path.index()) {
                    println!("change address={} to={to}", path.view.remote);
                }
            }
            Event::StreamsReset { incoming, outcome, .. } => {
                println!("reset incoming={} result={}", u8::from(incoming), result(outcome));
            }
            Event::AssociationReset { outcome, .. } => {
                println!("reset-association result={}", result(outcome));
            }
            Event::StreamsAdded { .. } => {
                let (outgoing, incoming) = association.streams();
                println!("streams outgoing={outgoing} incoming={incoming}");
            }
            Event::LocalAddress { address, change, granted } => {
                println!("local address={address} change={change:?} granted={granted}");
            }
            Event::PeerError { cause, .. } => println!("error words={cause}"),
            _ => {}
        }
    }
}

fn result(outcome: Reconfigured) -> String {
    format!("{outcome:?}").to_lowercase()
}

async fn receive(association: Association, received: Arc<Mutex<Tally>>) {
    // Messages not yet complete: pieces of several messages may be interleaved.
    let mut messages = BTreeMap::new();
    while let Ok(Some(piece)) = association.recv().await {
        let key = (piece.stream, piece.unordered, piece.mid.0);
        if piece.aborted {
            messages.remove(&key);
            continue;
        }
        let message: &mut Vec<u8> = messages.entry(key).or_default();
        message.extend(&piece.payload);
        if piece.end {
            let mut tally = received.lock().expect("nobody panics with it");
            tally.add(message, piece.stream.0, piece.ppid.0, piece.unordered);
            messages.remove(&key);
        }
    }
}

/// Parses the words after those that `send` always has.
fn limits(words: &[&str]) -> Result<(Reliability, bool), Failure> {
    let (mut reliability, mut prompt) = (Reliability::Reliable, false);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("lifetime", ms) => {
                reliability = Reliability::Lifetime(Duration::from_millis(ms.parse()?));
            }
            ("retransmissions", most) => {
                reliability = Reliability::Retransmissions(most.parse()?);
            }
            ("prompt", "") => prompt = true,
            _ => return Err(format!("no limit {word:?}").into()),
        }
    }
    Ok((reliability, prompt))
}

/// Executes the commands from stdin, one after the other.
async fn obey(
    endpoint: Endpoint,
    association: Association,
    received: Arc<Mutex<Tally>>,
) -> Result<(), Failure> {
    let (lines, mut commands) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).all(|line| lines.send(line).is_ok())
    });
    let mut sent = Tally::new();
    while let Some(line) = commands.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["send", count, size, streams, kind, ref limit @ ..] => {
                let (reliability, sack_immediately) = limits(limit)?;
                let limited = reliability != Reliability::Reliable;
                let (size, streams) = (size.parse()?, streams.parse::<u16>()?);
                for i in 0..count.parse::<u32>()? {
                    let number = if limited { i } else { sent.next() };
                    let stream = (i % u32::from(streams)) as u16;
                    let unordered = kind == "unordered" || (kind == "mixed" && i % 2 == 1);
                    let payload = tally::content(size, number);
                    let mark = if limited { tally::LIMITED } else { 0 };
                    let ppid = Ppid(tally::ppid(number, unordered) | mark);
                    if !limited {
                        sent.add(&payload, stream, ppid.0, unordered);
                    }
                    let message = Message::new(StreamId(stream), payload);
                    let message =
                        Message { ppid, unordered, reliability, sack_immediately, ..message };
                    association.send(message).await?;
                }
                println!("taken");
            }
            ["totals"] => {
                println!("sent {sent}");
                println!("received {}", received.lock().expect("nobody panics with it"));
            }
            ["limited"] => {
                let received = received.lock().expect("nobody panics with it");
                println!("limited messages={}", received.limited());
            }
            ["paths"] => {
                let paths = association.paths();
                let there = |path: &&Path| path.view.state != PathState::Removed;
                for path in paths.iter().filter(there) {
                    let (view, stats) = (path.view, path.stats);
                    println!(
                        "path address={} state={} cwnd={} port={} acked={} mtu={} marked={} notified={}",
                        view.remote,
                        view.state,
                        view.window.cwnd,
                        view.remote_port,
                        stats.heartbeats_acked,
                        path.mtu.mtu,
                        stats.congestion_experienced,
                        stats.congestion_notified
                    );
                }
                println!("paths count={}", paths.iter().filter(there).count());
            }
            ["shutdown"] => {
                let association = association.clone();
                tokio::spawn(async move { association.shutdown().await });
            }
            ["reset", "association"] => association.reset_association()?,
            ["reset", "incoming"] => association.reset_streams(StreamReset::Incoming, &[])?,
            ["reset", _] => association.reset_streams(StreamReset::Outgoing, &[])?,
            ["add", outgoing, incoming] => {
                association.add_streams(outgoing.parse()?, incoming.parse()?)?;
            }
            ["bind", ip] => endpoint.add_local_address(ip.parse()?)?,
            ["unbind", ip] => endpoint.remove_local_address(ip.parse()?),
            ["primary", ip] => association.set_peer_primary(ip.parse()?)?,
            ["abort"] => association.abort("enough of this"),
            _ => println!("failed no command {line:?}"),
        }
    }
    Ok(())
}
