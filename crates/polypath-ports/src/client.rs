//! The connection of a process to the daemon.

use std::io::{self, IoSliceMut, Read};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, send};

use polypath::ForeignError;

use crate::message::{Reply, Request};
use crate::name;
use crate::table::Claim;

/// Time that the daemon has for a reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    stream: Mutex<UnixStream>,
    /// Number of the next request and of the next claim.
    next: AtomicU32,
}

/// Addresses and an SCTP port that no other process has. They are free again when it is dropped.
#[derive(Debug)]
pub struct Claimed {
    client: Arc<Client>,
    id: u32,
    port: u16,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// Connects to the daemon that has this UDP port. `ConnectionRefused`: none runs.
    pub fn connect(udp_port: u16) -> io::Result<Self> {
        let stream = UnixStream::connect_addr(&name::address(udp_port)?)?;
        name::peer(&stream)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: Mutex::new(stream), next: AtomicU32::new(1) })
    }

    /// The number of the connection's descriptor.
    pub fn number(&self) -> i32 {
        lock(&self.stream).as_raw_fd()
    }

    /// Makes the daemon stay until this process has ended, even if it executes another program.
    pub fn attend(&self) -> io::Result<()> {
        self.ask(&Request::Attend, &mut None).map(drop)
    }

    /// The UDP sockets of this process, one of each IP version, and where it receives errors about
    /// its packets that other processes have got ([`read_error`](crate::message::read_error)).
    pub fn join(&self) -> io::Result<(Vec<UdpSocket>, UnixDatagram)> {
        let mut sockets = Some(Vec::new());
        self.ask(&Request::Join, &mut sockets)?;
        let mut sockets = sockets.unwrap_or_default();
        match sockets.pop() {
            Some(errors) if !sockets.is_empty() => {
                Ok((sockets.into_iter().map(UdpSocket::from).collect(), errors.into()))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Claims addresses and a port. `AddrInUse`: another process has the port; `OutOfMemory`: the
    /// kernel permits no more ports.
    pub fn claim(self: &Arc<Self>, claim: Claim) -> io::Result<Claimed> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let port = self.ask(&Request::Claim(id, claim), &mut None)? as u16;
        Ok(Claimed { client: self.clone(), id, port })
    }

    /// Malformed datagrams that have arrived at the UDP port so far.
    pub fn malformed(&self) -> io::Result<u32> {
        self.ask(&Request::Count, &mut None)
    }

    /// Packets for this address and port, which another process may have, have arrived at a socket
    /// of this one because the kernel has coalesced them with others.
    pub fn misdirected(&self, to: IpAddr, port: u16) {
        // Without a daemon there is no other process either.
        let _ = tell(&lock(&self.stream), &Request::Misdirected(to, port), 0);
    }

    /// An error about a packet that another process has sent.
    pub fn unreachable(&self, error: ForeignError) {
        let _ = tell(&lock(&self.stream), &Request::Unreachable(error), 0);
    }

    /// Sends a request and waits for its reply: a port or a number.
    fn ask(&self, request: &Request, sockets: &mut Option<Vec<OwnedFd>>) -> io::Result<u32> {
        let mut stream = lock(&self.stream);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        tell(&stream, request, number)?;
        loop {
            let mut bytes = [0; Reply::SIZE];
            let first = receive(&stream, &mut bytes, sockets)?;
            stream.read_exact(&mut bytes[first..])?;
            match Reply::read(&bytes) {
                (answered, Reply { error: 0, value }) if answered == number => return Ok(value),
                (answered, Reply { error, .. }) if answered == number => {
                    return Err(io::Error::from_raw_os_error(error as i32));
                }
                // That of a request whose thread has not waited for it.
                _ => {}
            }
        }
    }
}

impl Claimed {
    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Replaces the claim by another one with the same port. After an error, it is as before.
    pub fn change(&self, claim: Claim) -> io::Result<()> {
        let claim = Claim { port: self.port, ..claim };
        self.client.ask(&Request::Claim(self.id, claim), &mut None).map(drop)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // The end of the connection frees it, too.
        let _ = tell(&lock(&self.client.stream), &Request::Release(self.id), 0);
    }
}

/// Sends a request. A signal of a broken pipe would end the program.
fn tell(stream: &UnixStream, request: &Request, number: u32) -> io::Result<()> {
    let bytes = request.write(number);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        match send(stream.as_raw_fd(), rest, MsgFlags::MSG_NOSIGNAL) {
            Ok(sent) => rest = &rest[sent..],
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives a part of a reply, and sockets if they are asked for.
fn receive(
    stream: &UnixStream,
    bytes: &mut [u8],
    sockets: &mut Option<Vec<OwnedFd>>,
) -> io::Result<usize> {
    let mut control = nix::cmsg_space!([i32; 3]);
    let mut parts = [IoSliceMut::new(bytes)];
    let message = loop {
        let room = sockets.is_some().then_some(&mut control[..]);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(stream.as_raw_fd(), &mut parts, room, flags) {
            Err(nix::Error::EINTR) => {}
            done => break done?,
        }
    };
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let received = message.bytes;
    for one in message.cmsgs()? {
        if let (ControlMessageOwned::ScmRights(numbers), Some(sockets)) = (one, &mut *sockets) {
            sockets.extend(numbers.into_iter().map(owned));
        }
    }
    Ok(received)
}

#[expect(unsafe_code, reason = "a descriptor that a message has brought")]
fn owned(number: i32) -> OwnedFd {
    // SAFETY: the kernel has just made the descriptor, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(number) }
}
