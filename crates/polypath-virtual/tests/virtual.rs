//! Programs in virtual time: its clock, its network, and polypath's endpoints in them.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use polypath::{
    BindError, ConnectOptions, DatagramSocket, DatagramToSend, Ecn, Encapsulation, Encryption,
    Endpoint, EndpointOptions, Fragmentation, Message, Network, StreamId,
};
use polypath_sim::link::LossModel;
use polypath_sim::scenario::{AddressEvent, Fault, PathSpec, Workload};
use polypath_sim::units::{Probability, Rate, Size, Span};
use polypath_sim::{RunOptions, Scenario};
use polypath_virtual::{Error, Host, World};
use proptest::prelude::*;
use tokio::time::{Instant, sleep, sleep_until};

type Failure = Box<dyn std::error::Error>;

const PORT: u16 = 9260;

fn two_paths(mbit: u64, delay: u64) -> Scenario {
    let path = PathSpec::new(Rate::mbit(mbit), Span::millis(delay));
    Scenario::new("test").path(path.clone()).path(path)
}

fn ends(world: &World) -> Result<[Host; 2], Failure> {
    Ok([world.host("sender")?, world.host("receiver")?])
}

/// A server and a client with these options; the client sends one message of this many bytes.
/// Returns the time until it has been read.
async fn transfer(
    near: EndpointOptions,
    far: EndpointOptions,
    size: usize,
) -> Result<Duration, Failure> {
    let server = Endpoint::bind(EndpointOptions { port: PORT, listen: true, ..far })?;
    let client = Endpoint::bind(near)?;
    let start = Instant::now();
    let near = client.connect(ConnectOptions::new(PORT, server.local_addresses())).await?;
    let far = server.accept().await.ok_or("closed")?;
    near.send(Message::new(StreamId(0), vec![7; size])).await?;
    let received = far.recv().await?.ok_or("closed")?;
    assert!(received.payload.len() == size && received.payload.iter().all(|&byte| byte == 7));
    let took = start.elapsed();
    near.shutdown().await?;
    tokio::join!(client.close(), server.close());
    Ok(took)
}

/// One source of at most thirty lines, as the documentation shows it, in both worlds.
#[test]
fn the_example_runs_on_sockets_and_in_a_scenario() {
    let source = include_str!("../examples/transfer.rs");
    assert!(source.lines().count() <= 30);
    let page = include_str!("../../../docs/tutorial-simulated.md");
    for block in page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        assert!(
            source.contains(block),
            "docs/tutorial-simulated.md shows another program: {block}"
        );
    }
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/transfer");
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/demo.toml");
    for arguments in [vec![], vec![scenario]] {
        let ended = Command::new(&program).args(&arguments).output().unwrap();
        let said = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        assert!(said.starts_with("4000000 bytes in "), "{said}");
        if !arguments.is_empty() {
            // 4 MB at 2 x 10 Mbit/s.
            let seconds: f64 = said[17..].trim().trim_end_matches('s').parse().unwrap();
            assert!((1.7..2.6).contains(&seconds), "{said}");
        }
    }
}

/// The same links, policies and workload in the simulator, whose endpoints have no tasks and no
/// timers of a millisecond.
#[test]
fn it_takes_as_long_as_in_the_simulator() {
    for (mbit, delay, size) in [(10, 45, 4_000_000), (50, 10, 15_000_000), (2, 300, 500_000)] {
        let scenario = two_paths(mbit, delay);
        let outcome = scenario
            .clone()
            .workload(Workload::bulk(Size(size)))
            .run(&RunOptions::default())
            .unwrap();
        let simulated = outcome.associations[0].forward.time_from_start.unwrap();
        let took = polypath_virtual::run(&scenario, async |world| {
            let [near, far] = ends(&world)?;
            transfer(near.options(), far.options(), size as usize).await
        });
        let took = took.unwrap().unwrap().as_secs_f64();
        let ratio = took / simulated;
        assert!(
            (0.93..1.07).contains(&ratio),
            "{mbit} Mbit/s, {delay} ms: {took} s, {simulated} s"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut scenario = two_paths(10, 20).seed(seed).fault(Fault::down(0, Span::millis(900)));
        scenario.paths[1].loss = Some(LossModel::bernoulli(Probability::percent(1)));
        polypath_virtual::run(&scenario, async |world| {
            let [near, far] = ends(&world)?;
            transfer(near.options(), far.options(), 3_000_000).await
        })
        .unwrap()
        .unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// The path in use is cut in the middle of an encrypted transfer, and comes back.
#[test]
fn an_encrypted_transfer_survives_a_cut() {
    let scenario =
        two_paths(10, 20).fault(Fault::down(0, Span::millis(500)).lasting(Span::millis(2500)));
    let took = polypath_virtual::run(&scenario, async |world| {
        let [near, far] = ends(&world)?;
        let encrypted = |host: &Host| EndpointOptions {
            encryption: Some(Encryption::default()),
            ..host.options()
        };
        transfer(encrypted(&near), encrypted(&far), 4_000_000).await
    });
    let took = took.unwrap().unwrap();
    assert!((Duration::from_millis(2100)..Duration::from_secs(6)).contains(&took), "{took:?}");
}

/// A day of one message an hour passes at once.
#[test]
fn a_day_takes_no_time() {
    let begun = std::time::Instant::now();
    let mut scenario = two_paths(10, 20);
    scenario.run.limit = Span::secs(48 * 3600);
    polypath_virtual::run(&scenario, async |world| {
        let [near, far] = ends(&world)?;
        let far = EndpointOptions { port: PORT, listen: true, ..far.options() };
        let server = Endpoint::bind(far)?;
        let client = Endpoint::bind(near.options())?;
        let near = client.connect(ConnectOptions::new(PORT, server.local_addresses())).await?;
        let far = server.accept().await.ok_or("closed")?;
        let sender = tokio::spawn(async move {
            for hour in 0..24u8 {
                near.send(Message::new(StreamId(0), vec![hour])).await.unwrap();
                sleep(Duration::from_secs(3600)).await;
            }
            near.shutdown().await
        });
        let mut hours = 0;
        while let Some(received) = far.recv().await? {
            assert_eq!(received.payload[0], hours);
            hours += 1;
        }
        assert_eq!(hours, 24);
        assert!(world.now().as_secs_f64() > 24.0 * 3600.0);
        sender.await??;
        Ok::<_, Failure>(())
    })
    .unwrap()
    .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}

#[test]
fn what_cannot_run_says_why() {
    let scenario = two_paths(10, 20);
    let none = polypath_virtual::run(&scenario, async |world| world.host("nobody").map(drop));
    let text = none.unwrap().unwrap_err().to_string();
    assert_eq!(text, "no host \"nobody\"; the scenario has: sender, receiver");

    let mut short = scenario.clone();
    short.run.limit = Span::secs(5);
    let stuck = polypath_virtual::run(&short, async |_| std::future::pending::<()>().await);
    assert!(matches!(stuck, Err(Error::TimeLimit { limit }) if limit == Duration::from_secs(5)));
    let busy = polypath_virtual::run(&short, async |_| {
        loop {
            sleep(Duration::from_micros(300)).await;
        }
    });
    let busy: Result<(), Error> = busy;
    assert!(matches!(busy, Err(Error::TimeLimit { .. })));

    let moves = scenario.address(AddressEvent::goes("sender.0", Span::secs(1)));
    let refused = polypath_virtual::run(&moves, async |_| ());
    let text = refused.unwrap_err().to_string();
    assert_eq!(text, "address: a program's sockets stay where they are: take it out");
}

#[test]
fn addresses_and_ports_are_those_of_the_host() {
    polypath_virtual::run(&two_paths(10, 20), async |world| {
        let [near, far] = ends(&world)?;
        let options = || near.options();
        let wrong = EndpointOptions { addresses: far.addresses().to_vec(), ..options() };
        assert!(matches!(Endpoint::bind(wrong), Err(BindError::NotLocal { .. })));
        let raw = EndpointOptions { encapsulation: Encapsulation::RawIp, ..options() };
        assert!(matches!(Endpoint::bind(raw), Err(BindError::RawNotSupported)));
        let fixed =
            || EndpointOptions { encapsulation: Encapsulation::Udp { port: 9899 }, ..options() };
        let first = Endpoint::bind(fixed())?;
        assert!(matches!(Endpoint::bind(fixed()), Err(BindError::InUse { .. })));
        let any = EndpointOptions { addresses: vec!["0.0.0.0".parse()?], ..fixed() };
        assert!(matches!(Endpoint::bind(any), Err(BindError::InUse { .. })));
        // The port is free again when the endpoint is closed.
        first.close().await;
        Endpoint::bind(fixed())?;
        // Any free port differs from all others.
        let ports = [Endpoint::bind(options())?, Endpoint::bind(options())?].map(|e| e.port());
        assert_ne!(ports[0], ports[1]);
        Ok::<_, Failure>(())
    })
    .unwrap()
    .unwrap();
}

/// Unspecified addresses, and two endpoints on one host, which need no link.
#[test]
fn any_address_and_the_own_host() {
    polypath_virtual::run(&two_paths(10, 20), async |world| {
        let [near, far] = ends(&world)?;
        let any = |host: &Host| EndpointOptions {
            addresses: vec!["0.0.0.0".parse().unwrap()],
            ..host.options()
        };
        let server = Endpoint::bind(EndpointOptions { port: PORT, listen: true, ..any(&far) })?;
        let port = server.local_addresses()[0].port();
        for (client, round_trips) in [(near, 2), (far.clone(), 0)] {
            let client = Endpoint::bind(any(&client))?;
            let remotes = far.addresses().iter().map(|ip| SocketAddr::new(*ip, port));
            let begun = Instant::now();
            let association = client.connect(ConnectOptions::new(PORT, remotes)).await?;
            let took = begun.elapsed();
            assert_eq!(took.as_millis() / 40, round_trips, "{took:?}");
            association.send(Message::new(StreamId(0), "hello")).await?;
            let other = server.accept().await.ok_or("closed")?;
            assert_eq!(other.recv().await?.ok_or("closed")?.payload, "hello");
            association.shutdown().await?;
        }
        Ok::<_, Failure>(())
    })
    .unwrap()
    .unwrap();
}

/// Sends a datagram of this many bytes.
async fn send(socket: &mut dyn DatagramSocket, to: SocketAddr, size: usize) {
    let contents = vec![1; size];
    let datagram = DatagramToSend {
        source: None,
        destination: to,
        ecn: Ecn::NotEct,
        fragmentation: Fragmentation::Allowed,
        contents: &contents,
    };
    poll_fn(|cx| socket.poll_send(cx, &datagram)).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Packets arrive at their nanosecond, timers at the first millisecond that is not before their
    /// deadline, and time never goes back.
    #[test]
    fn everything_happens_at_its_time(
        delay in 1u64..50_000,
        pauses in prop::collection::vec((0u64..20_000_000, 1usize..1400), 1..30),
        timers in prop::collection::vec(0u64..100_000_000, 0..30),
    ) {
        // 8 Mbit/s: a microsecond for each byte.
        let path = PathSpec::new(Rate::mbit(8), Span(delay * 1000));
        let scenario = Scenario::new("times").path(path);
        polypath_virtual::run(&scenario, async |world| {
            let (near, far) = (world.host("sender").unwrap(), world.host("receiver").unwrap());
            let bind = |host: &Host| host.bind(SocketAddr::new(host.addresses()[0], 0)).unwrap();
            let (mut sender, mut receiver) = (bind(&near), bind(&far));
            let to = receiver.local_address();
            let start = Instant::now();
            for &timer in &timers {
                tokio::spawn(async move {
                    let deadline = start + Duration::from_nanos(timer);
                    sleep_until(deadline).await;
                    let late = deadline.elapsed();
                    // Packets may move the clock within the millisecond in which it expires.
                    assert!(late < Duration::from_millis(1), "{late:?}");
                });
            }
            let expected = tokio::spawn(async move {
                let (mut free, mut expected) = (Duration::ZERO, Vec::new());
                for (pause, size) in pauses {
                    sleep(Duration::from_nanos(pause)).await;
                    free = free.max(start.elapsed()) + Duration::from_micros(28 + size as u64);
                    expected.push(free + Duration::from_micros(delay));
                    send(&mut *sender, to, size).await;
                }
                expected
            });
            let mut arrivals = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            let mut last = Duration::ZERO;
            let expected = loop {
                let received = poll_fn(|cx| receiver.poll_receive(cx, &mut buffer));
                match tokio::time::timeout(Duration::from_secs(1), received).await {
                    Ok(arrival) => {
                        arrival.unwrap();
                        assert!(start.elapsed() >= last);
                        last = start.elapsed();
                        arrivals.push(last);
                    }
                    Err(_) => break expected.await.unwrap(),
                }
            };
            assert_eq!(arrivals, expected);
        }).unwrap();
    }
}
