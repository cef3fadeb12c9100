//! Threads that send without the runtime.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use polypath::{Config, ConnectOptions, Message, SendError, StreamId};
use tokio::runtime::{Builder, Runtime};

use crate::setup::{PORT, client, server, soon};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn messages_leave_while_the_runtime_stands_still() {
    let (port, ports) = mpsc::channel();
    let (number, numbers) = mpsc::channel();
    let other = thread::spawn(move || {
        runtime().block_on(async {
            let server = server(&["127.0.0.1"], &Config::rfc9260());
            port.send(server.local_addresses()[0].port()).unwrap();
            let far = soon(server.accept()).await.unwrap();
            while let Some(received) = soon(far.recv()).await.unwrap() {
                number.send(received.payload.len()).unwrap();
            }
        });
    });
    let to = format!("127.0.0.1:{}", ports.recv().unwrap()).parse().unwrap();
    let own = runtime();
    let (_client, near) = own.block_on(async {
        let client = client(&["127.0.0.2"], &Config::rfc9260());
        let near = soon(client.connect(ConnectOptions::new(PORT, [to]))).await.unwrap();
        // Until nothing is left to do.
        tokio::time::sleep(Duration::from_millis(50)).await;
        (client, near)
    });
    // No acknowledgement is read meanwhile: as much as the first congestion window permits.
    for size in 1..=3 {
        near.try_send_here(Message::new(StreamId(0), vec![7; size])).unwrap();
        assert_eq!(numbers.recv_timeout(Duration::from_secs(5)), Ok(size));
    }
    let mut sent = 3;
    loop {
        match near.try_send_here(Message::new(StreamId(0), vec![7; 60_000])) {
            Ok(()) => sent += 1,
            Err(error) => break assert!(matches!(error, SendError::WouldBlock)),
        }
    }
    own.block_on(async { soon(near.shutdown()).await }).unwrap();
    other.join().unwrap();
    assert_eq!(numbers.iter().count() + 3, sent);
}

/// A message that is larger than what keeps the endpoint's task busy wakes it from its sleep.
/// Otherwise each waited for the next timer, a second.
#[test]
fn large_messages_leave_an_idle_endpoint() {
    runtime().block_on(async {
        let server = server(&["127.0.0.1"], &Config::rfc9260());
        let to = server.local_addresses()[0];
        let client = client(&["127.0.0.2"], &Config::rfc9260());
        let near = soon(client.connect(ConnectOptions::new(PORT, [to]))).await.unwrap();
        let far = soon(server.accept()).await.unwrap();
        soon(async {
            for n in 0..100 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                let message = Message::new(StreamId(0), vec![7; 200_000]);
                match n % 2 {
                    0 => near.try_send(message).unwrap(),
                    _ => near.try_send_here(message).unwrap(),
                }
                assert_eq!(far.recv().await.unwrap().unwrap().payload.len(), 200_000);
            }
        })
        .await;
    });
}
