//! A peer that keeps to no rule, for the tests in `tests/test_transfer_attacks.py`:
//!
//! ```text
//! attacker LOCAL REMOTE:UDPPORT silent COUNT SECONDS    opens associations and sends nothing
//! attacker LOCAL REMOTE:UDPPORT hello COUNT SECONDS     sends the first message and no more
//! attacker LOCAL REMOTE:UDPPORT flood SECONDS           opens as many associations as it can
//! attacker LOCAL REMOTE:UDPPORT drip COUNT SECONDS      sends a byte of a large file each second
//! attacker LOCAL REMOTE:UDPPORT entry JSON...           announces entries, and prints each reply
//! attacker LOCAL REMOTE:UDPPORT close JSON              ends a folder that was not announced
//! attacker LOCAL REMOTE:UDPPORT raw PPID JSON           sends a message, and prints the reply
//! attacker LOCAL REMOTE:UDPPORT begin JSON              announces a transfer, and prints the reply
//! attacker LOCAL serve mute                             accepts associations and never replies
//! attacker LOCAL serve abort REASON                     ends each association at its first message
//! attacker LOCAL serve guess                            takes part in a proof, without the phrase
//! attacker LOCAL serve replies JSON...                  sends these replies to the first entry
//! ```
//!
//! It sends in clear: the other side runs with `--plain`, a receiver also with `--anyone`.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use polypath::{Association, ConnectOptions, Endpoint, EndpointOptions, Message, Ppid, StreamId};
use polypath_apps::consent::{greeted, hello};
use polypath_apps::transfer::FILES;
use polypath_apps::transfer::message::{Begin, Entry, FromSender, Kind, Place, Reply};
use tokio::time::{Instant, sleep, timeout};

/// Time for a reply.
const REPLY: Duration = Duration::from_secs(5);
/// Stream 0, and types of messages on it: reply to the first one, share of a proof, reply to an
/// entry.
const CONTROL: StreamId = StreamId(0);
const WELCOME: Ppid = Ppid(0x7066_0030);
const SHARE: Ppid = Ppid(0x7066_0031);
const RECEIVER: Ppid = Ppid(0x7066_0020);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Attacker {
    local: IpAddr,
    remote: SocketAddr,
}

impl Attacker {
    async fn connect(&self) -> Result<Association> {
        // Two endpoints have at most one association with each other.
        let endpoint = Endpoint::bind(EndpointOptions {
            addresses: vec![self.local],
            socket_buffer: Some(65_536),
            ..EndpointOptions::plain()
        })?;
        let connecting = endpoint.connect(ConnectOptions::new(9260, [self.remote]));
        Ok(timeout(REPLY, connecting).await??)
    }

    async fn hold(&self, count: usize, seconds: f64, greets: bool) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut held = Vec::new();
        for _ in 0..count {
            if let Ok(association) = self.connect().await {
                if greets && association.send(hello(FILES, false)).await.is_ok() {
                    let _ = greeted(&association, FILES, REPLY).await;
                }
                held.push(association);
            }
        }
        println!("opened {}", held.len());
        while Instant::now() < end {
            sleep(Duration::from_millis(100)).await;
            let open = held.iter().filter(|held| held.close_reason().is_none()).count();
            println!("open {open}");
        }
        Ok(())
    }

    async fn flood(&self, seconds: f64) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let (mut held, mut opened) = (Vec::new(), 0);
        println!("begins");
        while Instant::now() < end {
            if let Ok(association) = self.connect().await {
                opened += 1;
                held.push(association);
                held.retain(|held| held.close_reason().is_none());
            }
            println!("opened {opened}");
        }
        // The last ones may not know yet that they were turned away.
        sleep(Duration::from_secs(1)).await;
        held.retain(|held| held.close_reason().is_none());
        println!("open {}", held.len());
        Ok(())
    }

    async fn begin(&self, begin: Begin) -> Result<Association> {
        let association = self.connect().await?;
        association.send(hello(FILES, false)).await?;
        greeted(&association, FILES, REPLY).await?.accepted();
        association.send(FromSender::Begin(begin).message()).await?;
        Ok(association)
    }

    async fn drip(&self, count: usize, seconds: f64) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut held = Vec::new();
        for number in 0..count {
            let association = self.begin(announced(1)).await?;
            let entry = Entry {
                id: 0,
                path: vec![format!("drip-{number}")],
                kind: Kind::File(Some(1_000_000)),
                mode: None,
                modified: None,
            };
            association.send(FromSender::Entry(entry).message()).await?;
            println!("{:?}", reply(&association).await);
            association.send(FromSender::Start(Place { id: 0, offset: 0 }).message()).await?;
            held.push(association);
        }
        println!("drips");
        while Instant::now() < end {
            for association in &held {
                let _ = association.send(FromSender::Bytes("x".into()).message()).await;
            }
            sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }
}

fn announced(entries: u64) -> Begin {
    Begin { name: "attack".to_owned(), size: None, entries, tops: Vec::new() }
}

/// The receiver's reply, or the end of the association.
async fn reply(association: &Association) -> String {
    match timeout(REPLY, association.recv()).await {
        Ok(Ok(Some(received))) => format!("{:?}", Reply::read(received)),
        other => format!("{other:?}"),
    }
}

/// A message as it is.
fn raw(ppid: Ppid, payload: &str) -> Message {
    Message { ppid, ..Message::new(CONTROL, payload.to_owned()) }
}

/// A receiver that keeps to no rule.
async fn serve(local: IpAddr, how: &[&str]) -> Result<()> {
    let endpoint = Endpoint::bind(EndpointOptions {
        addresses: vec![local],
        port: 9260,
        listen: true,
        ..EndpointOptions::plain()
    })?;
    println!("UDP port {}", endpoint.local_addresses()[0].port());
    let mut held = Vec::new();
    while let Some(association) = endpoint.accept().await {
        println!("accepted");
        // Its first message.
        let _ = association.recv().await;
        match how {
            ["mute"] => {}
            ["abort", reason] => association.abort(*reason),
            ["guess"] => {
                association.send(raw(WELCOME, r#"{"version":2,"code":true}"#)).await?;
                if let Ok(Some(share)) = association.recv().await {
                    // A valid point: the peer's own.
                    let share = [b"B", &share.payload[1..]].concat();
                    let share = Message { ppid: SHARE, ..Message::new(CONTROL, share) };
                    association.send(share).await?;
                    println!("proof {:?}", association.recv().await.map(|part| part.is_some()));
                }
                // Without a reason, as if the connection were lost.
                association.abort("");
            }
            ["replies", replies @ ..] => {
                association.send(raw(WELCOME, r#"{"version":2,"code":false}"#)).await?;
                // What is sent, and the first entry.
                let _ = (association.recv().await, association.recv().await);
                for reply in replies {
                    association.send(raw(RECEIVER, reply)).await?;
                }
                let drained = async { while let Ok(Some(_)) = association.recv().await {} };
                let _ = timeout(REPLY, drained).await;
            }
            _ => return Err("no such receiver".into()),
        }
        held.push(association);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [_, local, remote, how @ ..] = &words[..] else {
        return Err("attacker LOCAL REMOTE:UDPPORT HOW ...".into());
    };
    if *remote == "serve" {
        return serve(local.parse()?, how).await;
    }
    let attacker = Attacker { local: local.parse()?, remote: remote.parse()? };
    match how {
        ["silent", count, seconds] => attacker.hold(count.parse()?, seconds.parse()?, false).await,
        ["hello", count, seconds] => attacker.hold(count.parse()?, seconds.parse()?, true).await,
        ["flood", seconds] => attacker.flood(seconds.parse()?).await,
        ["drip", count, seconds] => attacker.drip(count.parse()?, seconds.parse()?).await,
        ["entry", entries @ ..] => {
            let association = attacker.begin(announced(entries.len() as u64)).await?;
            for json in entries {
                let entry: Entry = serde_json::from_str(json)?;
                association.send(FromSender::Entry(entry).message()).await?;
                println!("{}", reply(&association).await);
            }
            Ok(())
        }
        ["close", json] => {
            let association = attacker.begin(announced(0)).await?;
            let entry: Entry = serde_json::from_str(json)?;
            association.send(FromSender::Close(entry).message()).await?;
            association.send(FromSender::Finish.message()).await?;
            println!("{}", reply(&association).await);
            Ok(())
        }
        ["raw", ppid, json] => {
            let association = attacker.connect().await?;
            association.send(raw(Ppid(ppid.parse()?), json)).await?;
            let reply = timeout(REPLY, association.recv()).await??;
            let text = reply.map(|reply| String::from_utf8_lossy(&reply.payload).into_owned());
            println!("{}", text.unwrap_or_default());
            Ok(())
        }
        ["begin", json] => {
            let association = attacker.begin(serde_json::from_str(json)?).await?;
            println!("{}", reply(&association).await);
            Ok(())
        }
        _ => Err("no such attack".into()),
    }
}
