//! Thousands of forwarded connections, in a process of their own: it compares what the process has
//! open.

#[path = "forward/setup.rs"]
mod setup;

use std::sync::Arc;
use std::time::Duration;

use polypath_apps::forward::client::Route;
use polypath_apps::forward::mux::Mux;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::timeout;

use setup::{PATIENCE, all_free, echo, forwarded, pair, target};

/// Connections that are open at the same time, and how often.
const WORKERS: usize = 1000;
const ROUNDS: usize = 10;
/// Rounds before memory is compared: the queues of the streams grow with use. With thirty rounds,
/// the last four thousand connections add 30 bytes each.
const WARM: usize = 6;
/// Bytes for each connection that count as a leak: it has four sockets, and as many tasks.
const LEAK: usize = 4000;
/// A variable of glibc.
const ONE_HEAP: &str = "MALLOC_ARENA_MAX";

/// One connection through `port`; `all_open` returns when every worker has one.
async fn exchange(port: std::net::SocketAddr, content: &[u8], all_open: &Barrier) {
    let mut socket = TcpStream::connect(port).await.unwrap();
    let (mut reader, mut writer) = socket.split();
    let writing = async {
        let (begin, rest) = content.split_at(content.len() / 2);
        writer.write_all(begin).await.unwrap();
        all_open.wait().await;
        writer.write_all(rest).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut found = Vec::new();
    let (_, read) = tokio::join!(writing, reader.read_to_end(&mut found));
    read.unwrap();
    assert!(found == content, "{} of {} bytes", found.len(), content.len());
}

/// Allows as many open files as the system grants: a connection here has four sockets.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Open files of this process, and the memory that it has in bytes.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Opens all connections at the same time.
async fn all_at_once(port: std::net::SocketAddr, client: &Mux, round: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    let all_open = Arc::new(Barrier::new(WORKERS));
    for worker in 0..WORKERS {
        let all_open = all_open.clone();
        tasks.spawn(async move {
            let content: Vec<u8> =
                (0..3000 + 10 * round).map(|i| (i * 7 + worker + round) as u8).collect();
            exchange(port, &content, &all_open).await;
        });
    }
    let all = async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    };
    assert!(timeout(10 * PATIENCE, all).await.is_ok(), "{} left", client.connections());
}

/// 10,000 connections, 1,000 of which are open at the same time: streams are used again, every byte
/// is right, and nothing is left: no stream, no open file, no memory.
#[test]
fn many_connections() {
    // With one heap, whose size does not depend on which thread has freed what.
    if std::env::var_os(ONE_HEAP).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let again = again.args(["--exact", "many_connections", "--nocapture"]).env(ONE_HEAP, "1");
        assert!(again.status().unwrap().success());
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(in_rounds());
}

async fn in_rounds() {
    raise_open_files();
    let (client, server) = pair(&["127.0.0.1:*"]).await;
    let port = forwarded(&client, Route::To(target(echo().await))).await;
    let files = open_files();
    let mut after = Vec::new();
    for round in 0..ROUNDS {
        all_at_once(port, &client, round).await;
        all_free([&client, &server]).await;
        after.push(memory() >> 10);
    }
    let closed = async {
        while open_files() > files {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, closed).await.is_ok(), "{} of {files} files are open", open_files());
    println!("memory after each thousand connections: {after:?} KiB");
    let grown = after[ROUNDS - 1].saturating_sub(after[WARM - 1]) << 10;
    let later = (ROUNDS - WARM) * WORKERS;
    assert!(grown / later < LEAK, "{grown} bytes more after {later} connections: {after:?} KiB");
}
