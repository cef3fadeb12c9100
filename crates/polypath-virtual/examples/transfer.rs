//! One program for two worlds: `transfer` between sockets of this host, or `transfer SCENARIO.toml`
//! between the hosts of a scenario, in its time.
use polypath::{ConnectOptions, Endpoint, EndpointOptions, Message, StreamId};
use polypath_sim::Scenario;

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn transfer(near: EndpointOptions, far: EndpointOptions) -> Outcome {
    let server = Endpoint::bind(EndpointOptions { port: 9260, listen: true, ..far })?;
    let client = Endpoint::bind(near)?;
    let start = tokio::time::Instant::now();
    let near = client.connect(ConnectOptions::new(9260, server.local_addresses())).await?;
    let far = server.accept().await.ok_or("closed")?;
    near.send(Message::new(StreamId(0), vec![0; 4_000_000])).await?;
    let received = far.recv().await?.ok_or("closed")?;
    println!("{} bytes in {:.1?}", received.payload.len(), start.elapsed());
    Ok(near.shutdown().await?)
}

fn main() -> Outcome {
    let Some(scenario) = std::env::args().nth(1) else {
        let addresses = vec!["127.0.0.1".parse()?, "127.0.0.2".parse()?];
        let host = || EndpointOptions { addresses: addresses.clone(), ..EndpointOptions::plain() };
        return tokio::runtime::Runtime::new()?.block_on(transfer(host(), host()));
    };
    polypath_virtual::run(&Scenario::from_file(scenario)?, async |world| {
        transfer(world.host("sender")?.options(), world.host("receiver")?.options()).await
    })?
}
