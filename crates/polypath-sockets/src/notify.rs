//! Notifications (RFC 6458 6.1, RFC 6525 6.1).

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use polypath::{
    Association, CloseReason, Event, PathState, Ppid, Received, Reconfigured, StreamId, Undelivered,
};

use crate::bytes::Writer;
use crate::frame::{Header, Kind, PAYLOAD};
use crate::link::{Link, lock};
use crate::{abi, address};

/// `sac_state`.
const COMM_UP: u16 = 0;
const COMM_LOST: u16 = 1;
const RESTART: u16 = 2;
const SHUTDOWN_COMP: u16 = 3;
const CANT_STR_ASSOC: u16 = 4;

/// `sac_error`: the cause of RFC 9260 3.3.10.12, in network byte order.
const USER_INITIATED_ABORT: u16 = 12;

/// `strreset_flags`, and those of the notifications next to it.
const INCOMING: u16 = 1;
const OUTGOING: u16 = 2;
const DENIED: u16 = 4;
const FAILED: u16 = 8;

/// Whether data that has arrived before an event is delivered before its notification.
pub(crate) const fn follows_data(event: &Event) -> bool {
    matches!(event, Event::PeerShutdown)
}

/// Reports the start of the association.
pub(crate) async fn established(link: &Link, association: &Association) {
    change(link, association, COMM_UP).await;
    adaptation(link, association).await;
    if association.auth_chunks().is_none() {
        const NO_AUTH: u32 = 2;
        authentication(link, NO_AUTH, 0).await;
    }
}

/// Reports that the peer uses another key.
async fn new_key(link: &Link, key: u16) {
    const NEW_KEY: u32 = 0;
    authentication(link, NEW_KEY, key).await;
}

/// Reports that a deactivated key is not used any more to send.
pub(crate) async fn free_key(link: &Link, key: u16) {
    const FREE_KEY: u32 = 1;
    authentication(link, FREE_KEY, key).await;
}

/// SCTP_AUTHENTICATION_EVENT.
async fn authentication(link: &Link, indication: u32, key: u16) {
    let mut writer = begin(abi::AUTHENTICATION_EVENT, 0, 20);
    writer.u16(key).u16(0).u32(indication).i32(link.id);
    send(link, abi::AUTHENTICATION_EVENT, &mut writer).await;
}

/// Reports the end of the association. The receiver of the notification sees the end of the
/// association from SO_ERROR too.
pub(crate) async fn ended(link: &Link, association: &Association) {
    let graceful = association.close_reason().is_some_and(|reason| reason.is_graceful());
    change(link, association, if graceful { SHUTDOWN_COMP } else { COMM_LOST }).await;
    lost(link, association).await;
    all_late(link).await;
}

/// Reports that an association was not established.
pub(crate) async fn not_started(link: &Link, association: &Association) {
    change(link, association, CANT_STR_ASSOC).await;
    lost(link, association).await;
    all_late(link).await;
}

/// Reports that everything sent has been acknowledged.
pub(crate) async fn dry(link: &Link) {
    let mut writer = begin(abi::SENDER_DRY_EVENT, 0, 12);
    writer.i32(link.id);
    send(link, abi::SENDER_DRY_EVENT, &mut writer).await;
}

/// Reports that the peer has abandoned a message that was delivered in part.
pub(crate) async fn aborted(link: &Link, received: &Received) {
    let mut writer = begin(abi::PARTIAL_DELIVERY_EVENT, 0, 24);
    // SCTP_PARTIAL_DELIVERY_ABORTED.
    writer.u32(0).i32(link.id).u32(received.stream.0.into()).u32(received.mid.0);
    send(link, abi::PARTIAL_DELIVERY_EVENT, &mut writer).await;
}

/// Reports an event of the association.
pub(crate) async fn event(link: &Link, association: &Association, event: &Event) {
    match event {
        Event::Restarted => {
            change(link, association, RESTART).await;
            adaptation(link, association).await;
            lost(link, association).await;
        }
        Event::PeerAborted { causes } => *lock(&link.causes) = causes.clone(),
        Event::AuthKeyUsed { key } => new_key(link, *key).await,
        Event::PeerShutdown => {
            let mut writer = begin(abi::SHUTDOWN_EVENT, 0, 12);
            writer.i32(link.id);
            send(link, abi::SHUTDOWN_EVENT, &mut writer).await;
        }
        Event::PathState { path, from, to, .. } => {
            // `spc_state`.
            let state = match (from, to) {
                // By the handshake, which Linux does not report.
                (PathState::Unconfirmed, _) if *path == association.primary() => return,
                (PathState::Unconfirmed, PathState::Active) => 5,
                (_, PathState::Active) => 0,
                (_, PathState::Inactive) => 1,
                (_, PathState::PotentiallyFailed)
                    if link.expose_pf.load(Ordering::Acquire) == abi::EXPOSE_PF =>
                {
                    6
                }
                (_, PathState::Removed) => 2,
                _ => return,
            };
            path_change(link, association, *path, state).await;
        }
        Event::PathAdded { path } => path_change(link, association, *path, 3).await,
        Event::PrimaryChanged { path } => path_change(link, association, *path, 4).await,
        Event::PeerError { causes, .. } => {
            for (code, value) in each_cause(causes) {
                let mut writer = begin(abi::REMOTE_ERROR, 0, 16 + value.len() as u32);
                writer.u16(code.to_be()).u16(0).i32(link.id).raw(value);
                send(link, abi::REMOTE_ERROR, &mut writer).await;
            }
        }
        // The core keeps each message that it reports.
        Event::SendFailed { .. } => lost(link, association).await,
        Event::StreamsReset { incoming, streams, outcome } => {
            let side = if *incoming { INCOMING } else { OUTGOING };
            let size = 12 + 2 * streams.len() as u32;
            let mut writer = begin(abi::STREAM_RESET_EVENT, side | flags(*outcome), size);
            writer.i32(link.id);
            for StreamId(stream) in streams {
                writer.u16(*stream);
            }
            send(link, abi::STREAM_RESET_EVENT, &mut writer).await;
        }
        Event::AssociationReset { outcome, tsns } => {
            let (local, remote) = tsns.map_or((0, 0), |(local, remote)| (local.0, remote.0));
            let mut writer = begin(abi::ASSOC_RESET_EVENT, flags(*outcome), 20);
            writer.i32(link.id).u32(local).u32(remote);
            send(link, abi::ASSOC_RESET_EVENT, &mut writer).await;
        }
        Event::StreamsAdded { outcome, .. } => {
            let (outgoing, incoming) = association.streams();
            link.streams.store(outgoing.into(), Ordering::Release);
            let mut writer = begin(abi::STREAM_CHANGE_EVENT, flags(*outcome), 16);
            writer.i32(link.id).u16(incoming).u16(outgoing);
            send(link, abi::STREAM_CHANGE_EVENT, &mut writer).await;
        }
        _ => {}
    }
}

/// The flags of a notification about a request of RFC 6525.
const fn flags(outcome: Reconfigured) -> u16 {
    match outcome {
        Reconfigured::Performed => 0,
        Reconfigured::Denied => DENIED,
        _ => FAILED,
    }
}

/// The start of a notification.
fn begin(kind: u16, flags: u16, size: u32) -> Writer {
    let mut writer = Writer::default();
    writer.u16(kind).u16(flags).u32(size);
    writer
}

/// SCTP_ASSOC_CHANGE. Linux adds no list of features either.
async fn change(link: &Link, association: &Association, state: u16) {
    let (outgoing, incoming) = match state {
        COMM_UP | RESTART => association.streams(),
        _ => (0, 0),
    };
    // What the peer's ABORT has after the chunk's header, as in Linux.
    let causes = if state == COMM_LOST { lock(&link.causes).clone() } else { Bytes::new() };
    let error = if state == COMM_LOST { error(link, association) } else { 0 };
    let mut writer = begin(abi::ASSOC_CHANGE, 0, 20 + causes.len() as u32);
    writer.u16(state).u16(error.to_be()).u16(outgoing).u16(incoming).i32(link.id).raw(&causes);
    send(link, abi::ASSOC_CHANGE, &mut writer).await;
}

/// The cause of the association's end (RFC 9260 3.3.10), or 0.
fn error(link: &Link, association: &Association) -> u16 {
    match association.close_reason() {
        Some(CloseReason::LocalAbort) => USER_INITIATED_ABORT,
        _ => cause(link),
    }
}

/// The first cause of the peer's ABORT, or 0.
fn cause(link: &Link) -> u16 {
    lock(&link.causes).first_chunk().map_or(0, |code| u16::from_be_bytes(*code))
}

/// The error causes of a chunk: code and value of each.
fn each_cause(causes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = causes;
    std::iter::from_fn(move || {
        let [code @ .., first, second] = *rest.first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([first, second]));
        // The last one may be cut off.
        let value = rest.get(4..length.max(4).min(rest.len()))?;
        rest = rest.get(length.max(4).next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_be_bytes(code), value))
    })
}

/// SCTP_ADAPTATION_INDICATION, if the peer has sent one.
async fn adaptation(link: &Link, association: &Association) {
    let Some(layer) = association.peer_adaptation_layer() else { return };
    let mut writer = begin(abi::ADAPTATION_INDICATION, 0, 16);
    writer.u32(layer).i32(link.id);
    send(link, abi::ADAPTATION_INDICATION, &mut writer).await;
}

/// SCTP_PEER_ADDR_CHANGE.
async fn path_change(link: &Link, association: &Association, path: polypath::PathId, state: u32) {
    let paths = association.paths();
    let Some(found) = paths.iter().find(|found| found.view.id == path) else { return };
    let peer = SocketAddr::new(found.view.remote, association.peer_port());
    let mut writer = begin(abi::PEER_ADDR_CHANGE, 0, 148);
    writer.raw(&address::storage(peer, link.name_family())).u32(state).u32(0).i32(link.id);
    send(link, abi::PEER_ADDR_CHANGE, &mut writer).await;
}

/// `ssf_flags`.
const DATA_SENT: u16 = 1;

/// `sinfo_flags` and `snd_flags`: the message, or what is left of it, ends and begins with what the
/// notification returns (SCTP_DATA_LAST_FRAG, SCTP_DATA_NOT_FRAG), and was unordered.
const LAST: u16 = 1;
const FIRST: u16 = 2;
const UNORDERED: u16 = 4;

/// Reports the messages that are lost or abandoned: whole, or with SCTP_MAXSEG in parts as large as
/// their fragments, as Linux does. Linux also splits them by the path MTU.
async fn lost(link: &Link, association: &Association) {
    let error = error(link, association);
    let largest = link.max_segment().unwrap_or(u32::MAX) as usize;
    for message in association.take_undelivered() {
        let size = message.payload.len();
        for start in (0..size.max(1)).step_by(largest) {
            let end = size.min(start + largest);
            let part = Undelivered {
                beginning: message.beginning && start == 0,
                end: message.end && end == size,
                payload: message.payload.slice(start..end),
                ..message.clone()
            };
            failed(link, &part, error).await;
        }
    }
}

/// Reports a message that was sent after the end of the association.
pub(crate) async fn late(link: &Link, header: &Header, payload: Bytes) {
    let message = Undelivered {
        stream: StreamId(header.stream),
        ppid: Ppid(u32::from_be(header.ppid)),
        context: header.context,
        unordered: header.flags & abi::SCTP_UNORDERED != 0,
        beginning: true,
        end: true,
        sent: false,
        payload,
    };
    failed(link, &message, cause(link)).await;
}

/// Reports all such messages.
async fn all_late(link: &Link) {
    for (header, payload) in link.take_late() {
        late(link, &header, payload).await;
    }
}

/// SCTP_SEND_FAILED and SCTP_SEND_FAILED_EVENT.
async fn failed(link: &Link, message: &Undelivered, error: u16) {
    let Undelivered { stream, ppid, context, payload, .. } = message;
    let mut flags = if message.end { LAST } else { 0 };
    flags |= if message.beginning { FIRST } else { 0 };
    flags |= if message.unordered { UNORDERED } else { 0 };
    let sent = if message.sent { DATA_SENT } else { 0 };
    let (ppid, size) = (ppid.0.to_be(), payload.len() as u32);
    let mut writer = begin(abi::SEND_FAILED, sent, 48 + size);
    writer.u32(error.to_be().into()).u16(stream.0).u16(0).u16(flags).u16(0).u32(ppid);
    writer.u32(*context).u32(0).u32(0).u32(0).i32(link.id).i32(link.id).raw(payload);
    send(link, abi::SEND_FAILED, &mut writer).await;
    let mut writer = begin(abi::SEND_FAILED_EVENT, sent, 32 + size);
    writer.u32(error.to_be().into()).u16(stream.0).u16(flags).u32(ppid).u32(*context);
    writer.i32(link.id).i32(link.id).raw(payload);
    send(link, abi::SEND_FAILED_EVENT, &mut writer).await;
}

/// Sends a notification if the program has subscribed to its type.
async fn send(link: &Link, kind: u16, notification: &mut Writer) {
    if !link.wants(kind) {
        return;
    }
    let bytes = Bytes::from(notification.done());
    for start in (0..bytes.len()).step_by(PAYLOAD) {
        let piece = bytes.slice(start..bytes.len().min(start + PAYLOAD));
        let end = start + piece.len() == bytes.len();
        let header = Header { end, ..Header::new(Kind::Notification) };
        link.deliver(&header, &piece).await;
    }
    link.signal();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_value() {
        let causes = [0, 1, 0, 8, 0, 9, 0, 0, 0, 6, 0, 7, 5, 5, 5, 0, 0, 13, 0, 99, 1, 2];
        let found: Vec<_> = each_cause(&causes).collect();
        assert_eq!(found, [(1, &[0, 9, 0, 0][..]), (6, &[5, 5, 5]), (13, &[1, 2])]);
        assert_eq!(each_cause(&[0, 1, 0, 0, 0]).collect::<Vec<_>>(), [(1, &[][..])]);
        assert_eq!(each_cause(&[]).count(), 0);
    }
}
