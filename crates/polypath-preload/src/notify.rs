//! Notifications (RFC 6458 6.1).

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use polypath::{Association, Event, PathState};
use tokio::io::unix::AsyncFd;

use crate::bytes::Writer;
use crate::end::{self, Descriptor};
use crate::frame::{Header, Kind};
use crate::socket::Link;
use crate::{abi, address};

/// `sac_state`.
const COMM_UP: u16 = 0;
const COMM_LOST: u16 = 1;
const RESTART: u16 = 2;
const SHUTDOWN_COMP: u16 = 3;

/// Whether data that has arrived before an event is delivered before its notification.
pub(crate) const fn follows_data(event: &Event) -> bool {
    matches!(event, Event::PeerShutdown)
}

/// Reports the start of the association.
pub(crate) async fn established(link: &Link, fd: &AsyncFd<Descriptor>, association: &Association) {
    change(link, fd, association, COMM_UP).await;
}

/// Reports the end of the association. The receiver of the notification sees the end of the
/// association from SO_ERROR too.
pub(crate) async fn ended(link: &Link, fd: &AsyncFd<Descriptor>, association: &Association) {
    let graceful = association.close_reason().is_some_and(|reason| reason.is_graceful());
    change(link, fd, association, if graceful { SHUTDOWN_COMP } else { COMM_LOST }).await;
}

/// Reports an event of the association.
pub(crate) async fn event(
    link: &Link,
    fd: &AsyncFd<Descriptor>,
    association: &Association,
    event: &Event,
) {
    match event {
        Event::Restarted => change(link, fd, association, RESTART).await,
        Event::PeerShutdown => {
            let mut writer = Writer::default();
            writer.u16(abi::SHUTDOWN_EVENT).u16(0).u32(12).i32(link.id);
            send(link, fd, abi::SHUTDOWN_EVENT, &writer.done()).await;
        }
        Event::PathState { path, from, to, .. } => {
            // `spc_state`.
            let state = match (from, to) {
                (PathState::Unconfirmed, PathState::Active) => 5,
                (_, PathState::Active) => 0,
                (_, PathState::Inactive) => 1,
                (_, PathState::Removed) => 2,
                _ => return,
            };
            let paths = association.paths();
            let Some(found) = paths.iter().find(|found| found.view.id == *path) else { return };
            let peer = SocketAddr::new(found.view.remote, association.peer_port());
            let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
            let mut writer = Writer::default();
            writer.u16(abi::PEER_ADDR_CHANGE).u16(0).u32(148);
            writer.raw(&address::storage(peer, family)).u32(state).u32(0).i32(link.id);
            send(link, fd, abi::PEER_ADDR_CHANGE, &writer.done()).await;
        }
        _ => {}
    }
}

/// SCTP_ASSOC_CHANGE.
async fn change(link: &Link, fd: &AsyncFd<Descriptor>, association: &Association, state: u16) {
    let (outgoing, incoming) = association.streams();
    let mut writer = Writer::default();
    writer.u16(abi::ASSOC_CHANGE).u16(0).u32(20).u16(state).u16(0);
    writer.u16(outgoing).u16(incoming).i32(link.id);
    send(link, fd, abi::ASSOC_CHANGE, &writer.done()).await;
}

/// Sends a notification if the program has subscribed to its type.
async fn send(link: &Link, fd: &AsyncFd<Descriptor>, kind: u16, notification: &[u8]) {
    let bit = 1 << (kind - abi::DATA_IO_EVENT);
    if link.events.load(Ordering::Acquire) & bit != 0 {
        end::send(fd, &Header::new(Kind::Notification), notification).await;
    }
}
