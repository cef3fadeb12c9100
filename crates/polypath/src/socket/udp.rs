//! SCTP in UDP (RFC 6951), with the operating system's batching and offload.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use polypath_proto::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

use super::Outgoing;
use super::buffers::{BUFFER, COUNT, Filled, ReceiveBuffers};
use super::waiting::Io;

pub(super) struct Udp {
    io: Arc<Io>,
    state: UdpSocketState,
    /// The kernel selects one of several sockets for each datagram.
    grouped: bool,
    /// Datagrams that one system call may send; 1 without segmentation offload.
    max_segments: usize,
    /// Offload was just switched off, and no single datagram has been sent since.
    offload_in_doubt: bool,
    #[cfg(target_os = "linux")]
    fragments: super::fragments::Fragments,
    /// The address that the socket is bound to.
    #[cfg(target_os = "linux")]
    bound: std::net::IpAddr,
    #[cfg(target_os = "linux")]
    exits: super::exits::Exits,
}

impl Udp {
    pub(super) fn new(io: Io) -> io::Result<Self> {
        Self::with(io, false)
    }

    /// One of several sockets with the same address, of which the kernel selects one for each
    /// datagram, and which others may have used before.
    pub(super) fn of_group(io: Io) -> io::Result<Self> {
        Self::with(io, true)
    }

    fn with(io: Io, grouped: bool) -> io::Result<Self> {
        let state = make_state(io.socket(), grouped)?;
        let max_segments = state.max_gso_segments();
        #[cfg(target_os = "linux")]
        let bound = io.socket().local_addr()?.ip();
        Ok(Self {
            io: Arc::new(io),
            state,
            grouped,
            max_segments,
            offload_in_doubt: false,
            #[cfg(target_os = "linux")]
            fragments: super::fragments::Fragments::new(true),
            #[cfg(target_os = "linux")]
            bound,
            #[cfg(target_os = "linux")]
            exits: super::exits::Exits::new(grouped),
        })
    }

    pub(super) const fn io(&self) -> &Arc<Io> {
        &self.io
    }

    pub(super) fn receive(
        &self,
        local: SocketAddr,
        buffers: &mut ReceiveBuffers,
    ) -> io::Result<()> {
        let mut meta = [RecvMeta::default(); COUNT];
        let mut pieces = buffers.storage().chunks_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; COUNT] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        let count = self.state.recv(self.io.socket().into(), &mut slices, &mut meta)?;
        for meta in &meta[..count] {
            let mut local = local;
            if let Some(address) = meta.dst_ip {
                local.set_ip(address);
            }
            let ecn = match meta.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            };
            buffers.push(Filled::new((local, meta.addr), ecn, (0, meta.len), meta.stride));
        }
        Ok(())
    }

    /// Maximum number of datagrams for one call of [`try_send`](Self::try_send).
    pub(super) const fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Sends with one system call.
    ///
    /// An error that segmentation offload may have caused switches offload off, and the caller
    /// retries with single datagrams. If these fail as well, the cause is another one (such as an
    /// address removed from the host), and offload is switched on again.
    pub(super) fn try_send(&mut self, outgoing: &Outgoing<'_>) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let socket = self.io.socket();
            self.fragments.set(socket, outgoing.destination, outgoing.fragmentation)?;
            let source = outgoing.source.unwrap_or(self.bound);
            self.exits.set(socket, source, outgoing.destination);
        }
        let several = outgoing.datagrams() > 1;
        let transmit = Transmit {
            destination: outgoing.destination,
            ecn: match outgoing.ecn {
                Ecn::NotEct => None,
                Ecn::Ect0 => Some(EcnCodepoint::Ect0),
                Ecn::Ect1 => Some(EcnCodepoint::Ect1),
                Ecn::Ce => Some(EcnCodepoint::Ce),
            },
            contents: outgoing.contents,
            segment_size: several.then_some(outgoing.segment),
            src_ip: outgoing.source,
        };
        let result = self.state.try_send(self.io.socket().into(), &transmit);
        match &result {
            Ok(()) => self.offload_in_doubt = false,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                if matches!(error.kind(), io::ErrorKind::InvalidInput) || is_io_error(error) {
                    // quinn-udp attributes this error to an old kernel and disables ECN and offload
                    // for good, but an absent source address gives the same error.
                    self.state = make_state(self.io.socket(), self.grouped)?;
                    #[cfg(target_os = "linux")]
                    {
                        self.fragments = super::fragments::Fragments::new(true);
                    }
                    if several {
                        self.offload_in_doubt = true;
                        self.max_segments = 1;
                    }
                }
                if self.offload_in_doubt && !several {
                    self.offload_in_doubt = false;
                    self.max_segments = self.state.max_gso_segments();
                }
            }
        }
        result
    }
}

fn make_state(socket: &UdpSocket, grouped: bool) -> io::Result<UdpSocketState> {
    #[cfg(target_os = "linux")]
    use nix::sys::socket::{getsockopt, setsockopt, sockopt};
    // The process that has opened the group decides whether the kernel coalesces datagrams.
    #[cfg(target_os = "linux")]
    let separate = grouped && getsockopt(socket, sockopt::UdpGroSegment) == Ok(false);
    let state = UdpSocketState::new(socket.into())?;
    #[cfg(target_os = "linux")]
    if separate {
        setsockopt(socket, sockopt::UdpGroSegment, &false)?;
    }
    state.enable_transport_errors(socket.into())?;
    Ok(state)
}

/// EIO: the error of some drivers for segmentation offload.
fn is_io_error(error: &io::Error) -> bool {
    const EIO: i32 = 5;
    error.raw_os_error() == Some(EIO)
}
