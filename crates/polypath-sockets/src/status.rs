//! Socket options that report on an association.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use polypath::{AbandonedCounts, AssociationState, Path, PathState, StreamId};

use crate::bytes::{Reader, Writer};
use crate::errno::Errno;
use crate::link::lock;
use crate::lookup::{path, primary};
use crate::parameters::ms;
use crate::socket::Sock;
use crate::{abi, address, calls};

pub(crate) fn get(sock: &Sock, name: i32, request: &[u8]) -> Errno<Vec<u8>> {
    let id = Reader(request).i32(0);
    let mut writer = Writer::default();
    match name {
        abi::STATUS => status(sock, id),
        abi::GET_PEER_ADDR_INFO => {
            let (association, link) = (sock.association(id)?, sock.member(id)?);
            let peer = request.get(4..).unwrap_or_default();
            // No address does not mean the primary path here.
            if address::parse(peer)?.ip().is_unspecified() {
                return Err(libc::EINVAL);
            }
            let path = path(&association, peer)?;
            if path.view.state == PathState::PotentiallyFailed
                && link.expose_pf.load(Ordering::Acquire) == abi::HIDE_PF
            {
                return Err(libc::EACCES);
            }
            Ok(paddrinfo(sock, link.id, &path, association.peer_port()))
        }
        abi::PRIMARY_ADDR => {
            let association = sock.association(id)?;
            let primary = primary(&association)?;
            let peer = SocketAddr::new(primary.view.remote, association.peer_port());
            Ok(writer.i32(id).raw(&address::storage(peer, sock.link.name_family())).done())
        }
        abi::GET_PEER_ADDRS | abi::GET_LOCAL_ADDRS => {
            let found = match name {
                abi::GET_PEER_ADDRS => calls::peers(sock, id)?,
                _ => calls::listed(sock, id)?,
            };
            let mut addresses = Vec::new();
            let family = sock.link.name_family();
            found.iter().for_each(|one| addresses.extend(address::format(*one, family)));
            let fits = request.len() >= 8 + addresses.len();
            // The program passes the number of addresses for this association.
            let count = found.len() as u32;
            let value = writer.i32(id).u32(count).raw(&addresses).done();
            if fits { Ok(value) } else { Err(libc::ENOMEM) }
        }
        abi::GET_ASSOC_STATS => stats(sock, id),
        _ => abandoned(sock, name, request),
    }
}

/// `sctp_paddrinfo`.
fn paddrinfo(sock: &Sock, id: i32, path: &Path, port: u16) -> Vec<u8> {
    let view = &path.view;
    let state = match view.state {
        PathState::Inactive | PathState::Removed => 0,
        PathState::PotentiallyFailed => 1,
        PathState::Active => 2,
        PathState::Unconfirmed => 3,
    };
    let peer = SocketAddr::new(view.remote, port);
    let mut writer = Writer::default();
    writer.i32(id).raw(&address::storage(peer, sock.link.name_family())).u32(state);
    writer.u32(view.window.cwnd).u32(view.srtt.map_or(0, ms)).u32(ms(view.rto));
    writer.u32(path.mtu.mtu).done()
}

/// `sctp_status`.
fn status(sock: &Sock, id: i32) -> Errno<Vec<u8>> {
    let association = sock.association(id)?;
    let link = sock.member(id)?;
    let state = state(association.state());
    let primary = primary(&association)?;
    let (outgoing, incoming) = association.streams();
    let in_flight: u32 = association.paths().iter().map(|path| path.view.in_flight).sum();
    let chunk = primary.view.max_chunk.max(1);
    let unacknowledged = in_flight.div_ceil(chunk) as u16;
    let queued = (lock(&sock.reading).is_some() || sock.link.inbox().is_partly_read()).into();
    let mut writer = Writer::default();
    writer.i32(link.id).i32(state).u32(association.peer_rwnd()).u16(unacknowledged).u16(queued);
    writer.u16(incoming).u16(outgoing).u32(link.largest_payload(chunk));
    Ok(writer.raw(&paddrinfo(sock, link.id, &primary, association.peer_port())).done())
}

/// `sstat_state`.
const fn state(state: AssociationState) -> i32 {
    match state {
        AssociationState::Closed => 1,
        AssociationState::CookieWait => 2,
        AssociationState::CookieEchoed => 3,
        AssociationState::ShutdownPending => 5,
        AssociationState::ShutdownSent => 6,
        AssociationState::ShutdownReceived => 7,
        AssociationState::ShutdownAckSent => 8,
        // Established.
        _ => 4,
    }
}

/// `sctp_assoc_stats`. What the core does not count is 0: gap blocks, and control chunks.
fn stats(sock: &Sock, id: i32) -> Errno<Vec<u8>> {
    let association = sock.association(id)?;
    let (stats, paths) = (association.stats(), association.paths());
    let sum = |of: fn(&polypath::PathStats) -> u64| paths.iter().map(|path| of(&path.stats)).sum();
    // Paths that were removed are not counted.
    let ordered = u64::saturating_sub;
    let slowest = paths.iter().max_by_key(|path| path.view.rto);
    let peer = slowest.map(|path| SocketAddr::new(path.view.remote, association.peer_port()));
    let mut writer = Writer::default();
    writer.i32(id).u32(0);
    writer.raw(&peer.map_or_else(
        || vec![0; address::STORAGE],
        |peer| address::storage(peer, sock.link.name_family()),
    ));
    let values: [u64; 15] = [
        slowest.map_or(0, |path| ms(path.view.rto).into()),
        stats.sacks_received,
        stats.sacks_sent,
        sum(|path| path.packets_sent),
        sum(|path| path.packets_received),
        sum(|path| path.fast_retransmissions + path.timeout_retransmissions),
        0,
        stats.duplicates_received,
        0,
        stats.unordered_chunks_sent,
        stats.unordered_chunks_received,
        ordered(sum(|path| path.data_chunks_sent), stats.unordered_chunks_sent),
        ordered(sum(|path| path.data_chunks_received), stats.unordered_chunks_received),
        0,
        0,
    ];
    for value in values {
        writer.raw(&value.to_ne_bytes());
    }
    Ok(writer.done())
}

/// SCTP_PR_ASSOC_STATUS and SCTP_PR_STREAM_STATUS (RFC 7496 4.3, 4.4).
fn abandoned(sock: &Sock, name: i32, request: &[u8]) -> Errno<Vec<u8>> {
    /// SCTP_PR_SCTP_ALL.
    const ALL: u16 = 0x80;
    let reader = Reader(request);
    let association = sock.association(reader.i32(0))?;
    let stream = (name == abi::PR_STREAM_STATUS).then(|| StreamId(reader.u16(4)));
    if stream.is_some_and(|stream| stream.0 >= association.streams().0) {
        return Err(libc::EINVAL);
    }
    let found = association.abandoned(stream);
    let AbandonedCounts { unsent, sent, .. } = match reader.u16(6) {
        abi::SCTP_PR_SCTP_TTL => found.lifetime,
        abi::SCTP_PR_SCTP_RTX => found.retransmissions,
        abi::SCTP_PR_SCTP_PRIO => found.priority,
        ALL => found.total(),
        _ => return Err(libc::EINVAL),
    };
    let mut writer = Writer::default();
    writer.raw(&request[..8]).raw(&unsent.to_ne_bytes()).raw(&sent.to_ne_bytes());
    Ok(writer.done())
}
