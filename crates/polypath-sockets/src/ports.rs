//! The daemon of `polypath run --shared`, as a process sees it.

use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polypath::{ForeignError, PortSpace, SharedSockets};
use polypath_ports::client::Client;
use polypath_ports::message::{LONGEST, read_error};
use tokio::net::UnixDatagram;
use tokio::runtime::Handle;

use crate::errno::Errno;
use crate::link::lock;
use crate::{private, real, report};

/// The daemon, for this process.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) client: Arc<Client>,
    others: Arc<Others>,
    /// The UDP sockets, and the datagrams that each had dropped when the process got it.
    sockets: Vec<(c_int, u32)>,
}

impl Ports {
    /// Lines for `polypath run --doctor`.
    pub(crate) fn report(&self) -> String {
        let dropped: u32 =
            self.sockets.iter().map(|(fd, before)| dropped(*fd).wrapping_sub(*before)).sum();
        let misdirected = self.others.misdirected.load(Ordering::Relaxed);
        let malformed = self.client.malformed().unwrap_or(0);
        let line = |count: u32, what: &str| match count {
            0 => String::new(),
            _ => format!("polypath run: {count} datagrams {what}\n"),
        };
        line(dropped, "dropped because the program did not receive them in time")
            + &line(
                misdirected,
                "of other programs dropped, which the kernel had coalesced with its own",
            )
            + &line(malformed, "malformed, at the UDP port of all programs")
    }
}

/// The ports of other processes.
struct Others {
    client: Arc<Client>,
    /// Packets that have reached this process instead of others.
    misdirected: AtomicU32,
    reported: Mutex<Option<Instant>>,
}

/// Until the kernel stops to coalesce, each report would be followed by many.
const REPORT_AGAIN: Duration = Duration::from_millis(100);

impl PortSpace for Others {
    /// The daemon replies to packets for ports that no process has.
    fn is_elsewhere(&self, _to: IpAddr, _port: u16) -> bool {
        true
    }

    fn misdirected(&self, to: IpAddr, port: u16, packets: usize) {
        self.misdirected.fetch_add(packets as u32, Ordering::Relaxed);
        let mut reported = lock(&self.reported);
        if reported.is_none_or(|at| at.elapsed() >= REPORT_AGAIN) {
            *reported = Some(Instant::now());
            self.client.misdirected(to, port);
        }
    }

    fn unreachable(&self, error: ForeignError) {
        self.client.unreachable(error);
    }
}

/// Datagrams that the kernel has dropped because a socket's buffer was full (SO_MEMINFO).
fn dropped(fd: c_int) -> u32 {
    const SO_MEMINFO: c_int = 55;
    // SK_MEMINFO_DROPS of linux/sock_diag.h is the last one.
    let mut info = [0u32; 9];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the value has room for its length.
    unsafe {
        let value = info.as_mut_ptr().cast();
        real::getsockopt(fd, libc::SOL_SOCKET, SO_MEMINFO, value, &raw mut length);
    }
    info[8]
}

/// Connects to the daemon: the connection, and the UDP sockets of this process. A task of the
/// engine receives the errors about its packets that others have got.
pub(crate) fn join(udp_port: u16, runtime: &Handle) -> Errno<(Ports, SharedSockets)> {
    let joined = private::inside(|| {
        let client = Client::connect(udp_port)?;
        private::mark(client.number());
        let (udp, errors) = client.join()?;
        let udp: Vec<UdpSocket> = udp.into_iter().map(kept).collect();
        let _runtime = runtime.enter();
        let errors = UnixDatagram::from_std(kept(errors))?;
        let client = Arc::new(client);
        let misdirected = AtomicU32::new(0);
        let others =
            Arc::new(Others { client: client.clone(), misdirected, reported: Mutex::new(None) });
        let numbers = udp.iter().map(AsRawFd::as_raw_fd);
        let sockets = numbers.map(|fd| (fd, dropped(fd))).collect();
        let watched: Vec<UdpSocket> =
            udp.iter().map(UdpSocket::try_clone).collect::<io::Result<_>>()?;
        let shared = SharedSockets::given(udp, others.clone());
        // Also for others while this process has no endpoint.
        for socket in watched {
            runtime.spawn(shared.watch(kept(socket))?);
        }
        runtime.spawn(receive_errors(errors, shared.clone()));
        Ok((Ports { client, others, sockets }, shared))
    });
    joined.map_err(|error| failed(&error))
}

async fn receive_errors(from: UnixDatagram, shared: SharedSockets) {
    let mut bytes = [0; LONGEST];
    // It ends with the daemon.
    while let Ok(size @ 1..) = from.recv(&mut bytes).await {
        if let Some(error) = read_error(&bytes[..size]) {
            shared.report(error);
        }
    }
}

/// A socket that a message has brought, as a descriptor of the engine.
fn kept<T: IntoRawFd + FromRawFd>(socket: T) -> T {
    let fd = private::raised(socket.into_raw_fd());
    private::mark(fd);
    // SAFETY: `raised` has taken the descriptor, and returns one that nothing else owns.
    unsafe { T::from_raw_fd(fd) }
}

pub(crate) fn failed(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or_else(|| {
        report::missed("a port without the daemon of --shared");
        libc::ENETDOWN
    })
}
