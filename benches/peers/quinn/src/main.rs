//! One-way bulk of QUIC (quinn) over one stream: what another transport in user space reaches with
//! encryption, segmentation offload and its default congestion control.
//!
//! ```text
//! quinn-bulk recv ADDRESS PORT CERTIFICATE
//! quinn-bulk send ADDRESS PORT CERTIFICATE SECONDS WRITE_SIZE
//! ```
//! The receiver writes its certificate to a file, which the sender reads, and prints a line on
//! stderr when it is ready. It prints one line of JSON at the end: bytes, and seconds from the
//! first of them to the last. Both run in one thread, with flow control windows of 4 MiB.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

type Failure = Box<dyn Error + Send + Sync>;

const WINDOW: u32 = 4 << 20;
const NAME: &str = "localhost";

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW.into()).send_window(WINDOW.into());
    Arc::new(transport)
}

async fn recv(address: SocketAddr, file: &str) -> Result<(), Failure> {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    std::fs::write(file, own.cert.der())?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![own.cert.into()], key.into())?;
    config.transport_config(transport());
    let endpoint = Endpoint::server(config, address)?;
    eprintln!("ready");
    let connection = endpoint.accept().await.ok_or("the endpoint ended")?.await?;
    let mut stream = connection.accept_uni().await?;
    let (mut bytes, mut first, mut last) = (0, None, Instant::now());
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        last = Instant::now();
        first.get_or_insert(last);
        bytes += chunk.bytes.len();
    }
    let seconds = last.duration_since(first.unwrap_or(last)).as_secs_f64();
    println!("{{\"bytes\": {bytes}, \"seconds\": {seconds}}}");
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn send(address: SocketAddr, file: &str, seconds: f64, size: usize) -> Result<(), Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(file)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport());
    let endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    let connection = endpoint.connect_with(config, address, NAME)?.await?;
    let mut stream = connection.open_uni().await?;
    let block = vec![0x5a; size];
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        for _ in 0..16 {
            stream.write_all(&block).await?;
        }
    }
    stream.finish()?;
    connection.closed().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["recv", ip, port, file] => recv(format!("{ip}:{port}").parse()?, file).await,
        ["send", ip, port, file, seconds, size] => {
            let to = format!("{ip}:{port}").parse()?;
            send(to, file, seconds.parse()?, size.parse()?).await
        }
        _ => {
            Err("usage: recv ADDRESS PORT CERTIFICATE | send ADDRESS PORT CERTIFICATE SECONDS SIZE"
                .into())
        }
    }
}
