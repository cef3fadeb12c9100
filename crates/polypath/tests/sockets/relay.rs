//! A relay between two addresses that preserves the IP addresses of both sides and changes the UDP
//! ports, as a network address translator does. It can be cut, and change its port.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

pub(crate) struct Relay {
    shared: Arc<Shared>,
    /// The server's address from the client's point of view.
    front: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

struct Shared {
    front: UdpSocket,
    /// The client's address from the server's point of view; replaced when the port changes.
    back: Mutex<Arc<UdpSocket>>,
    client: Mutex<Option<SocketAddr>>,
    server: SocketAddr,
    cut: AtomicBool,
    /// Datagrams that the server may still send to the client.
    answers: AtomicUsize,
}

impl Relay {
    /// A relay between a client with the address `client` and `server`.
    pub(crate) async fn new(client: IpAddr, server: SocketAddr) -> Self {
        let front = UdpSocket::bind((server.ip(), 0)).await.unwrap();
        let back = Arc::new(UdpSocket::bind((client, 0)).await.unwrap());
        let address = front.local_addr().unwrap();
        let shared = Arc::new(Shared {
            front,
            back: Mutex::new(back.clone()),
            client: Mutex::new(None),
            server,
            cut: AtomicBool::new(false),
            answers: AtomicUsize::new(usize::MAX),
        });
        let tasks = vec![
            tokio::spawn(shared.clone().to_server()),
            tokio::spawn(shared.clone().to_client(back)),
        ];
        Self { shared, front: address, tasks }
    }

    /// The address to connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.front
    }

    /// Drops all datagrams from now on, or stops doing so. No error is reported.
    pub(crate) fn cut(&self, cut: bool) {
        self.shared.cut.store(cut, Ordering::Relaxed);
    }

    /// Passes no more than this many datagrams on to the client from now on.
    pub(crate) fn allow_answers(&self, count: usize) {
        self.shared.answers.store(count, Ordering::Relaxed);
    }

    /// Marks datagrams to the server as "congestion experienced" from now on, or not; else the
    /// relay clears their codepoints.
    pub(crate) fn mark(&self, mark: bool) {
        let back = self.shared.back.lock().unwrap();
        socket2::SockRef::from(&**back).set_tos_v4(if mark { 0b11 } else { 0 }).unwrap();
    }

    /// Changes the UDP port from which the server receives the client's datagrams.
    pub(crate) async fn change_port(&mut self) {
        let ip = self.shared.back.lock().unwrap().local_addr().unwrap().ip();
        let back = Arc::new(UdpSocket::bind((ip, 0)).await.unwrap());
        // The old port is closed when its task has ended.
        self.tasks.pop().unwrap().abort();
        *self.shared.back.lock().unwrap() = back.clone();
        self.tasks.push(tokio::spawn(self.shared.clone().to_client(back)));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Shared {
    async fn to_server(self: Arc<Self>) {
        let mut datagram = vec![0; 65_536];
        loop {
            // Errors come from ICMP messages.
            let Ok((size, from)) = self.front.recv_from(&mut datagram).await else { continue };
            *self.client.lock().unwrap() = Some(from);
            let back = self.back.lock().unwrap().clone();
            if !self.cut.load(Ordering::Relaxed) {
                let _ = back.send_to(&datagram[..size], self.server).await;
            }
        }
    }

    async fn to_client(self: Arc<Self>, back: Arc<UdpSocket>) {
        let mut datagram = vec![0; 65_536];
        loop {
            let Ok((size, _)) = back.recv_from(&mut datagram).await else { continue };
            let client = *self.client.lock().unwrap();
            let left = |n: usize| n.checked_sub(1);
            if let Some(client) = client
                && !self.cut.load(Ordering::Relaxed)
                && self.answers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
            {
                let _ = self.front.send_to(&datagram[..size], client).await;
            }
        }
    }
}
