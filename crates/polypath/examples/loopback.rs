//! Measures message throughput, round-trip times and CPU time of one association between two
//! processes.
//!
//! ```text
//! loopback pair --size 65536 --seconds 5      # both sides, the receiver in a process of its own
//! loopback recv --udp-port 9899               # one side each
//! loopback send 127.0.0.1:9899 --size 65536 --seconds 5
//! loopback echo --udp-port 9899               # ping-pong
//! loopback ping 127.0.0.1:9899 --size 64 --count 20000
//! ```
//! Each prints one line of JSON on stdout. MB are 10^6 bytes, GB 10^9; CPU seconds are user and
//! system time of the process.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::{Args, Parser, Subcommand};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use polypath::{
    Association, Config, ConnectOptions, Encapsulation, Encryption, Endpoint, EndpointOptions,
    Identity, Message, StreamId, Trust,
};
use serde_json::{Value, json};

const SCTP_PORT: u16 = 9260;

/// Round trips before those that are measured.
const WARM_UP: usize = 200;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    side: Side,
    /// Threads of the runtime; 1 runs everything in the main thread.
    #[arg(long, global = true, default_value_t = 1)]
    threads: usize,
    /// Receive and send buffer, in bytes.
    #[arg(long, global = true, default_value_t = 4 << 20)]
    buffer: u32,
    /// Path MTU in bytes.
    #[arg(long, global = true, default_value_t = 1500)]
    mtu: u16,
    /// Encrypt, on both sides.
    #[arg(long, global = true)]
    encrypt: bool,
    /// Constants and policies.
    #[arg(long, global = true, default_value = "modern")]
    profile: String,
    /// Copy each message from and to one buffer of the program, as the socket functions of C do.
    #[arg(long, global = true)]
    copy: bool,
}

#[derive(Subcommand)]
enum Side {
    /// Receives from one sender until it is done.
    Recv(Local),
    /// Sends to a receiver.
    Send {
        to: SocketAddr,
        #[command(flatten)]
        load: Load,
    },
    /// Returns each message of one sender until it is done.
    Echo(Local),
    /// Sends messages to an echo, one after the other.
    Ping {
        to: SocketAddr,
        /// Bytes of a message.
        #[arg(long, default_value_t = 64)]
        size: usize,
        /// Number of messages that are measured, after as many as WARM_UP.
        #[arg(long, default_value_t = 20_000)]
        count: usize,
    },
    /// Both, with the receiver as a separate process.
    Pair {
        #[command(flatten)]
        load: Load,
    },
}

#[derive(Args, Clone, Copy)]
struct Local {
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// 0 picks any free port; the port is printed on stderr.
    #[arg(long, default_value_t = polypath::UDP_PORT)]
    udp_port: u16,
}

#[derive(Args, Clone, Copy)]
struct Load {
    /// Bytes of a message.
    #[arg(long, default_value_t = 65_536)]
    size: usize,
    /// How long to send.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Send unordered messages.
    #[arg(long)]
    unordered: bool,
}

fn main() -> Result<(), Failure> {
    let cli = Cli::parse();
    let runtime = match cli.threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        n => tokio::runtime::Builder::new_multi_thread().worker_threads(n).enable_all().build()?,
    };
    let result = match &cli.side {
        Side::Recv(local) => runtime.block_on(recv(&cli, *local))?,
        Side::Echo(local) => runtime.block_on(echo(&cli, *local))?,
        Side::Ping { to, size, count } => runtime.block_on(ping(&cli, *to, *size, *count))?,
        Side::Send { to, load } => runtime.block_on(send(&cli, *to, *load))?,
        Side::Pair { load } => pair(&cli, &runtime, *load)?,
    };
    println!("{result}");
    Ok(())
}

fn endpoint(cli: &Cli, address: IpAddr, port: u16, udp_port: u16) -> Result<Endpoint, Failure> {
    let profile = Config::profile(&cli.profile).ok_or("there is no such profile")?;
    let config = profile
        .to_builder()
        .receive_buffer(cli.buffer)
        .send_buffer(cli.buffer)
        .path_mtu(cli.mtu)
        .build()?;
    let encryption = match cli.encrypt {
        true => Some(Encryption::new(Identity::generate()?, Trust::Anyone)),
        false => None,
    };
    Ok(Endpoint::bind(EndpointOptions {
        addresses: vec![address],
        encryption,
        port,
        encapsulation: Encapsulation::Udp { port: udp_port },
        listen: port != 0,
        config,
        ..EndpointOptions::plain()
    })?)
}

/// An endpoint that listens, and its first association.
async fn accepted(cli: &Cli, local: Local) -> Result<(Endpoint, Association), Failure> {
    let endpoint = endpoint(cli, local.bind, SCTP_PORT, local.udp_port)?;
    eprintln!("{}", endpoint.local_addresses()[0]);
    let association = endpoint.accept().await.ok_or("the endpoint ended")?;
    Ok((endpoint, association))
}

async fn recv(cli: &Cli, local: Local) -> Result<Value, Failure> {
    let (endpoint, association) = accepted(cli, local).await?;
    let meter = Meter::start()?;
    let (mut bytes, mut messages) = (0, 0);
    let mut buffer = vec![0; if cli.copy { 1 << 20 } else { 0 }];
    while let Some(received) = association.recv().await? {
        if cli.copy {
            let size = received.payload.len();
            let room = buffer.get_mut(..size).ok_or("the message is too large to copy")?;
            room.copy_from_slice(&received.payload);
            black_box(&buffer);
        }
        bytes += received.payload.len() as u64;
        messages += u64::from(received.end);
    }
    let result = meter.stop("recv", bytes, messages, &endpoint)?;
    drop(association);
    endpoint.close().await;
    Ok(result)
}

/// An association with a receiver, and its endpoint.
async fn connected(cli: &Cli, to: SocketAddr) -> Result<(Endpoint, Association), Failure> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let endpoint = endpoint(cli, any, 0, 0)?;
    let association = endpoint.connect(ConnectOptions::new(SCTP_PORT, [to])).await?;
    Ok((endpoint, association))
}

async fn echo(cli: &Cli, local: Local) -> Result<Value, Failure> {
    let (endpoint, association) = accepted(cli, local).await?;
    let meter = Meter::start()?;
    let (mut bytes, mut messages) = (0, 0);
    while let Some(received) = association.recv().await? {
        bytes += received.payload.len() as u64;
        messages += 1;
        association.send(Message::new(received.stream, received.payload)).await?;
    }
    let result = meter.stop("echo", bytes, messages, &endpoint)?;
    drop(association);
    endpoint.close().await;
    Ok(result)
}

async fn ping(cli: &Cli, to: SocketAddr, size: usize, count: usize) -> Result<Value, Failure> {
    let (_endpoint, association) = connected(cli, to).await?;
    let payload = Bytes::from(vec![0x5a; size]);
    let mut times = Vec::with_capacity(count);
    for round in 0..WARM_UP + count {
        let start = Instant::now();
        association.send(Message::new(StreamId(0), payload.clone())).await?;
        association.recv().await?.ok_or("the echo has ended")?;
        if round >= WARM_UP {
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    association.shutdown().await?;
    times.sort_by(f64::total_cmp);
    let at = |hundredths: usize| times.get(count * hundredths / 100);
    Ok(json!({ "role": "ping", "median_us": at(50), "p99_us": at(99), "cpu_s": cpu_seconds()? }))
}

async fn send(cli: &Cli, to: SocketAddr, load: Load) -> Result<Value, Failure> {
    let (endpoint, association) = connected(cli, to).await?;
    let meter = Meter::start()?;
    let payload = Bytes::from(vec![0x5a; load.size]);
    let end = meter.start + Duration::from_secs_f64(load.seconds);
    let mut messages = 0;
    while Instant::now() < end {
        // Small messages: reading the clock for each one would take a noticeable share of the time.
        for _ in 0..16 {
            let payload = match cli.copy {
                true => Bytes::copy_from_slice(black_box(&payload)),
                false => payload.clone(),
            };
            let message =
                Message { unordered: load.unordered, ..Message::new(StreamId(0), payload) };
            association.send(message).await?;
            messages += 1;
        }
    }
    association.shutdown().await?;
    meter.stop("send", messages * load.size as u64, messages, &endpoint)
}

fn pair(cli: &Cli, runtime: &tokio::runtime::Runtime, load: Load) -> Result<Value, Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["recv", "--udp-port", "0"])
        .args(["--threads", &cli.threads.to_string()])
        .args(["--buffer", &cli.buffer.to_string()])
        .args(["--mtu", &cli.mtu.to_string()])
        .args(["--profile", &cli.profile])
        .args(cli.encrypt.then_some("--encrypt"))
        .args(cli.copy.then_some("--copy"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    let stderr = child.stderr.take().ok_or("no stderr")?;
    BufReader::new(stderr).read_line(&mut address)?;
    let sender = runtime.block_on(send(cli, address.trim().parse()?, load));
    if sender.is_err() {
        child.kill()?;
    }
    let mut receiver = String::new();
    child.stdout.take().ok_or("no stdout")?.read_to_string(&mut receiver)?;
    child.wait()?;
    Ok(json!({
        "message_bytes": load.size,
        "unordered": load.unordered,
        "threads": cli.threads,
        "buffer_bytes": cli.buffer,
        "mtu_bytes": cli.mtu,
        "encrypt": cli.encrypt,
        "send": sender?,
        "recv": serde_json::from_str::<Value>(&receiver)?,
    }))
}

/// Time and CPU time from the first message to the end.
struct Meter {
    start: Instant,
    cpu: f64,
}

impl Meter {
    fn start() -> Result<Self, Failure> {
        Ok(Self { start: Instant::now(), cpu: cpu_seconds()? })
    }

    fn stop(
        &self,
        role: &str,
        bytes: u64,
        messages: u64,
        endpoint: &Endpoint,
    ) -> Result<Value, Failure> {
        let seconds = self.start.elapsed().as_secs_f64();
        let cpu = cpu_seconds()? - self.cpu;
        let sockets = &endpoint.socket_stats()[0];
        Ok(json!({
            "role": role,
            "bytes": bytes,
            "messages": messages,
            "seconds": seconds,
            "mb_per_s": bytes as f64 / 1e6 / seconds,
            "cpu_s": cpu,
            "cpu_s_per_gb": cpu / (bytes as f64 / 1e9),
            "datagrams_sent": sockets.datagrams_sent,
            "datagrams_received": sockets.datagrams_received,
            "sends": sockets.sends,
        }))
    }
}

fn cpu_seconds() -> Result<f64, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
