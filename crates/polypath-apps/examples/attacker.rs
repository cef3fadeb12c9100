//! A sender that keeps to no rule, for the tests in `tests/test_transfer_attacks.py`:
//!
//! ```text
//! attacker LOCAL REMOTE:UDPPORT silent COUNT SECONDS    opens associations and sends nothing
//! attacker LOCAL REMOTE:UDPPORT hello COUNT SECONDS     sends the first message and no more
//! attacker LOCAL REMOTE:UDPPORT flood SECONDS           opens as many associations as it can
//! attacker LOCAL REMOTE:UDPPORT drip COUNT SECONDS      sends a byte of a large file each second
//! attacker LOCAL REMOTE:UDPPORT entry JSON              announces an entry, and prints the reply
//! attacker LOCAL REMOTE:UDPPORT begin JSON              announces a transfer, and prints the reply
//! ```
//!
//! It sends in clear: the receiver runs with `--plain --anyone`.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use polypath::{Association, ConnectOptions, Endpoint, EndpointOptions};
use polypath_apps::consent::{greeted, hello};
use polypath_apps::transfer::FILES;
use polypath_apps::transfer::message::{Begin, Entry, FromSender, Kind, Place, Reply};
use tokio::time::{Instant, sleep, timeout};

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
        Ok(timeout(Duration::from_secs(5), connecting).await??)
    }

    async fn hold(&self, count: usize, seconds: f64, greets: bool) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut held = Vec::new();
        for _ in 0..count {
            if let Ok(association) = self.connect().await {
                if greets && association.send(hello(FILES, false)).await.is_ok() {
                    let _ = greeted(&association, FILES).await;
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
        greeted(&association, FILES).await?.accepted();
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
    match timeout(Duration::from_secs(5), association.recv()).await {
        Ok(Ok(Some(received))) => format!("{:?}", Reply::read(received)),
        other => format!("{other:?}"),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [_, local, remote, how @ ..] = &words[..] else {
        return Err("attacker LOCAL REMOTE:UDPPORT HOW ...".into());
    };
    let attacker = Attacker { local: local.parse()?, remote: remote.parse()? };
    match how {
        ["silent", count, seconds] => attacker.hold(count.parse()?, seconds.parse()?, false).await,
        ["hello", count, seconds] => attacker.hold(count.parse()?, seconds.parse()?, true).await,
        ["flood", seconds] => attacker.flood(seconds.parse()?).await,
        ["drip", count, seconds] => attacker.drip(count.parse()?, seconds.parse()?).await,
        ["entry", json] => {
            let association = attacker.begin(announced(1)).await?;
            let entry: Entry = serde_json::from_str(json)?;
            association.send(FromSender::Entry(entry).message()).await?;
            println!("{}", reply(&association).await);
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
