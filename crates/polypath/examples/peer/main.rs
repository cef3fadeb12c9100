//! This stack's side of the interoperability tests: an endpoint that obeys commands on stdin and
//! tells on stdout what happens. The peers on other stacks speak the same (`tests/interop`).
//!
//! ```text
//! peer listen|connect LOCAL[,LOCAL] PORT REMOTE[,REMOTE]|- UDP|- REMOTE_UDP|- OPTION...
//! ```
//! UDP ports are those of RFC 6951 (`-`: IP protocol 132). Options: `brisk` notices failures within a
//! second, `mtu=BYTES` sets the path MTU, `offer=ANSWER` what is offered of `rtt_sampling`, `reconfig` offers
//! stream reconfiguration, `pmtud` looks for the path MTU, `ecn` offers ECN, `partial` partial reliability and
//! `interleave` user message interleaving.
//!
//! Commands: `send COUNT SIZE STREAMS ordered|unordered|mixed|partial` (`partial`: ordered, never sent again, and
//! counted apart), `totals`, `paths`, `shutdown`, `abort`, `reset outgoing|incoming|association`,
//! `add OUTGOING INCOMING`.

mod tally;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polypath::proto::policy::{find, rtt_sampling, stream_scheduler};
use polypath::{
    Association, CloseReason, Config, ConnectOptions, Encapsulation, Endpoint, EndpointOptions,
    Event, Message, Ppid, Reconfigured, Reliability, StreamId, StreamReset,
};
use tally::Tally;
use tokio::sync::mpsc;

type Failure = Box<dyn Error + Send + Sync>;

/// What the command line says.
struct Plan {
    listens: bool,
    locals: Vec<IpAddr>,
    port: u16,
    remotes: Vec<IpAddr>,
    encapsulation: Encapsulation,
    remote_udp: u16,
    config: Config,
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
        })
    }
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
            ("partial", "") => builder.partial_reliability(true),
            ("interleave", "") => {
                builder.interleaving(true).stream_scheduler(&stream_scheduler::ROUND_ROBIN)
            }
            ("mtu", bytes) => builder.path_mtu(bytes.parse()?),
            ("pmtud", "") => builder.path_mtu_discovery(true),
            ("ecn", "") => builder.ecn(true),
            ("reconfig", "") => builder.stream_reconfiguration(true),
            ("offer", name) => {
                let answer = find(rtt_sampling::ANSWERS, name);
                builder.rtt_sampling(answer.ok_or_else(|| format!("no answer {name:?}"))?)
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
        ..EndpointOptions::default()
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
    let received = Arc::new(Mutex::new(Tally::new()));
    tokio::spawn(watch(association.clone()));
    let reading = tokio::spawn(receive(association.clone(), received.clone()));
    let commands = obey(association.clone(), received);
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
    // The last packets go out.
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.close()).await;
    Ok(())
}

/// Tells what happens to the association.
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
            Event::AssociationReset { outcome } => {
                println!("reset-association result={}", result(outcome));
            }
            Event::StreamsAdded { .. } => {
                let (outgoing, incoming) = association.streams();
                println!("streams outgoing={outgoing} incoming={incoming}");
            }
            Event::PeerError { cause } => println!("error words={cause}"),
            _ => {}
        }
    }
}

fn result(outcome: Reconfigured) -> String {
    format!("{outcome:?}").to_lowercase()
}

async fn receive(association: Association, received: Arc<Mutex<Tally>>) {
    // Of messages that have begun: pieces of several may come by turns.
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

/// Does what stdin says, one command after the other.
async fn obey(association: Association, received: Arc<Mutex<Tally>>) -> Result<(), Failure> {
    let (lines, mut commands) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).all(|line| lines.send(line).is_ok())
    });
    let mut sent = Tally::new();
    while let Some(line) = commands.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["send", count, size, streams, "partial"] => {
                let (size, streams) = (size.parse()?, streams.parse::<u16>()?);
                for i in 0..count.parse::<u32>()? {
                    let stream = StreamId((i % u32::from(streams)) as u16);
                    let plain = Message::new(stream, tally::content(size, i));
                    let reliability = Reliability::Retransmissions(0);
                    let ppid = tally::PARTIAL;
                    association.send(Message { ppid, reliability, ..plain }).await?;
                }
                println!("taken");
            }
            ["send", count, size, streams, kind] => {
                let (size, streams) = (size.parse()?, streams.parse::<u16>()?);
                for i in 0..count.parse::<u32>()? {
                    let number = sent.next();
                    let stream = (i % u32::from(streams)) as u16;
                    let unordered = kind == "unordered" || (kind == "mixed" && i % 2 == 1);
                    let payload = tally::content(size, number);
                    let ppid = Ppid(tally::ppid(number, unordered));
                    sent.add(&payload, stream, ppid.0, unordered);
                    let message = Message::new(StreamId(stream), payload);
                    association.send(Message { ppid, unordered, ..message }).await?;
                }
                println!("taken");
            }
            ["totals"] => {
                println!("sent {sent}");
                println!("received {}", received.lock().expect("nobody panics with it"));
                let partial = received.lock().expect("nobody panics with it").partial;
                let given_up = association.abandoned(None).total();
                println!("partial received={partial} given_up={}", given_up.sent + given_up.unsent);
            }
            ["paths"] => {
                for path in association.paths() {
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
                println!("paths count={}", association.paths().len());
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
            ["abort"] => association.abort("enough of this"),
            _ => println!("failed no command {line:?}"),
        }
    }
    Ok(())
}
