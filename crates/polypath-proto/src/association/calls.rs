//! The application's calls (RFC 9260 11.1), and what they report.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::data::largest_chunk;
use super::reconfig::{AcceptedRequests, Request, StreamReset};
use super::state::{AssociationState, State};
use super::{Association, StreamMut};
use crate::auth::{AuthKeys, ChunkTypes, KeyError};
use crate::config::refused_thresholds;
use crate::constants::{Delivery, Thresholds};
use crate::error::{AddressError, PathError, ReconfigError, SendError};
use crate::event::{Message, Received};
use crate::extension::Extension;
use crate::ids::{PathId, StreamId};
use crate::init;
use crate::outbox::Control;
use crate::path::{Path, PathMtu, PathState, PathView};
use crate::policy::{Policy, StreamScheduler};
use crate::preference::Preference;
use crate::reliability::{Abandoned, Reliability};
use crate::shared::Shared;
use crate::stats::PathStats;
use crate::streams::Streams;
use crate::time::Time;

/// Round-trip time before the first sample.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

impl Association {
    /// Counts of abandoned messages: on one stream (SCTP_PR_STREAM_STATUS) or on all
    /// (SCTP_PR_ASSOC_STATUS; RFC 7496 4.3, 4.4).
    pub fn abandoned(&self, stream: Option<StreamId>) -> Abandoned {
        self.sending.abandonments.of(stream)
    }

    /// Sends a HEARTBEAT on this path now, for a new sample of its round-trip time (RFC 9260
    /// 11.1.10, REQUESTHEARTBEAT).
    ///
    /// # Errors
    ///
    /// There is no such path, or the association is not established.
    pub fn request_heartbeat(&mut self, now: Time, path: PathId) -> Result<(), PathError> {
        let p = self.paths.get(path).ok_or(PathError::NoSuchPath(path))?;
        if p.state() == PathState::Removed {
            return Err(PathError::NoSuchPath(path));
        }
        if !self.state.is_synchronised() || self.paths.is_unannounced(path, &self.shared) {
            return Err(PathError::NotEstablished);
        }
        sender!(self).send_heartbeat(now, path);
        Ok(())
    }

    /// Like [`request_heartbeat`](Self::request_heartbeat), in an IP packet of `packet` bytes. An
    /// answer (`heartbeats_acked` of the path) shows that packets of this size are delivered in
    /// both directions. Sizes larger than the path MTU or smaller than a HEARTBEAT are clamped.
    ///
    /// # Errors
    ///
    /// There is no such path, or the association is not established.
    pub fn probe(&mut self, now: Time, path: PathId, packet: u16) -> Result<(), PathError> {
        let p = self.paths.get(path).ok_or(PathError::NoSuchPath(path))?;
        if p.state() == PathState::Removed {
            return Err(PathError::NoSuchPath(path));
        }
        if !self.state.is_synchronised() || self.paths.is_unannounced(path, &self.shared) {
            return Err(PathError::NotEstablished);
        }
        let below = p.headers();
        let size = usize::from(packet).saturating_sub(below).clamp(64, p.max_packet());
        sender!(self).note_heartbeat(now, path);
        self.outbox.push(path, Control::Probe(size));
        Ok(())
    }

    /// The path's MTU, as far as it is known (RFC 8899; `spinfo_mtu` of RFC 6458 8.2.2).
    pub fn path_mtu(&self, path: PathId) -> Option<PathMtu> {
        self.paths.get(path).map(Path::mtu)
    }

    /// Sets the scheduler that chooses the stream to send from next (SCTP_STREAM_SCHEDULER, RFC
    /// 8260 4.3.2).
    pub fn set_stream_scheduler(&mut self, policy: impl Into<Policy<dyn StreamScheduler>>) {
        self.config.stream_scheduler = policy.into();
        self.reschedule();
    }

    /// Makes the scheduler anew, for the current values of the streams.
    fn reschedule(&mut self) {
        let scheduler = self.config.stream_scheduler().make(&self.config.setup());
        self.sending.queue.schedule(scheduler);
    }

    /// Sets a stream's value for the scheduler: its priority, where smaller numbers are served
    /// first, or its weight (SCTP_STREAM_SCHEDULER_VALUE, RFC 8260 4.3.3). It is 0 at the start.
    ///
    /// # Errors
    ///
    /// There is no such stream.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), SendError> {
        if stream.0 >= self.handshake.outbound_streams {
            return Err(SendError::NoSuchStream {
                stream,
                streams: self.handshake.outbound_streams,
            });
        }
        self.sending.queue.set_value(stream, value);
        self.reschedule();
        Ok(())
    }

    /// Whether both sides have agreed on an extension in the handshake.
    pub const fn has_agreed_on(&self, extension: Extension) -> bool {
        self.handshake.extensions.contains(extension)
    }

    /// The state of the association (RFC 9260 4).
    pub const fn state(&self) -> AssociationState {
        self.state.public()
    }

    /// A stream's value for the scheduler; see [`set_stream_value`](Self::set_stream_value).
    pub fn stream_value(&self, stream: StreamId) -> u16 {
        self.sending.queue.value(stream)
    }

    /// Sets how the messages of a stream are sent from now on, those that wait included, or with
    /// `None` those of all streams. A message may differ ([`Message::delivery`]).
    ///
    /// # Errors
    ///
    /// There is no such stream.
    pub fn set_delivery(
        &mut self,
        stream: Option<StreamId>,
        delivery: Delivery,
    ) -> Result<(), SendError> {
        let streams = self.handshake.outbound_streams;
        if let Some(stream) = stream.filter(|stream| stream.0 >= streams) {
            return Err(SendError::NoSuchStream { stream, streams });
        }
        self.sending.queue.set_delivery(stream, Some(delivery));
        Ok(())
    }

    /// The state of every path, in the order of their ids.
    pub fn paths(&self) -> impl Iterator<Item = PathView> + '_ {
        self.paths.views()
    }

    /// The state of one path.
    pub fn path(&self, id: PathId) -> Option<PathView> {
        self.paths.get(id).map(Path::view)
    }

    /// A path's counters.
    pub fn path_stats(&self, id: PathId) -> Option<PathStats> {
        self.paths.get(id).map(|p| p.stats)
    }

    /// The primary path (RFC 9260 6.4).
    pub const fn primary(&self) -> PathId {
        self.paths.primary()
    }

    /// The path for new data: the primary, or the one that the failover policy has chosen instead.
    pub const fn current_path(&self) -> PathId {
        self.paths.current()
    }

    /// Makes another path the primary (RFC 9260 11.1.6, SETPRIMARY).
    ///
    /// # Errors
    ///
    /// There is no such path, or it is not confirmed yet.
    pub fn set_primary(&mut self, now: Time, path: PathId) -> Result<(), PathError> {
        if self.paths.known(path)?.state() == PathState::Unconfirmed {
            return Err(PathError::Unconfirmed(path));
        }
        self.paths.set_primary(now, path, &mut self.events);
        Ok(())
    }

    /// Sets how much a path is preferred, from now on. At first the endpoint's
    /// [`preferences`](crate::EndpointConfig::preferences) decide.
    ///
    /// # Errors
    ///
    /// There is no such path.
    pub fn set_preference(
        &mut self,
        now: Time,
        path: PathId,
        preference: Preference,
    ) -> Result<(), PathError> {
        self.paths.known(path)?;
        self.paths.set_preference(now, path, preference, &mut self.events);
        Ok(())
    }

    /// Sets the error thresholds of one path, or with `None` of all present and future ones (RFC
    /// 9260 11.1.12, SETFAILURETHRESHOLD). They apply from the next error on.
    ///
    /// # Errors
    ///
    /// There is no such path, or the failover mechanism would ignore `change_primary` or must
    /// refuse it (RFC 7829 5).
    pub fn set_thresholds(
        &mut self,
        path: Option<PathId>,
        thresholds: Thresholds,
    ) -> Result<(), PathError> {
        if let Some(error) = refused_thresholds(self.config.failover(), thresholds) {
            return Err(error.into());
        }
        if path.is_none() {
            self.config.constants.set_thresholds(thresholds);
        }
        self.paths.set_thresholds(path, thresholds)
    }

    /// Sets Association.Max.Retrans: more than `errors` consecutive errors over all paths end the
    /// association (RFC 9260 8.1). It applies from the next error on.
    pub const fn set_association_max_retrans(&mut self, errors: u32) {
        self.config.constants.association_max_retrans = errors;
    }

    /// Sets the share of lost packets on a path, per billion packets: the oracle of RTX-LOSSRATE
    /// (Iyengar 2004, II), which a simulator can provide. Without it, the policy uses the loss
    /// observed on the path.
    ///
    /// # Errors
    ///
    /// There is no such path.
    pub fn set_loss_rate(&mut self, path: PathId, per_billion: u32) -> Result<(), PathError> {
        let p = self.paths.get_mut(path).ok_or(PathError::NoSuchPath(path))?;
        p.set_known_loss(per_billion);
        Ok(())
    }

    /// The endpoint pair shared keys (RFC 4895 6.1).
    pub const fn auth_keys(&self) -> &AuthKeys {
        self.auth.shared()
    }

    /// Changes the endpoint pair shared keys (RFC 6458 8.1.20, 8.3.3, 8.3.4:
    /// `SCTP_AUTH_ACTIVE_KEY`, `SCTP_AUTH_KEY`, `SCTP_AUTH_DELETE_KEY`). The peer must have a key
    /// before this side uses it.
    ///
    /// # Errors
    ///
    /// The error that `change` returns; nothing is changed then.
    pub fn change_auth_keys(
        &mut self,
        change: impl FnOnce(&mut AuthKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        self.auth.change(change)
    }

    /// Chunk types that this side accepts only authenticated (`SCTP_LOCAL_AUTH_CHUNKS`); `None` if
    /// the two sides have not agreed on authentication.
    pub fn local_auth_chunks(&self) -> Option<ChunkTypes> {
        self.auth.are_agreed().then(|| self.config.demanded_chunks())
    }

    /// Chunk types that the peer accepts only authenticated (`SCTP_PEER_AUTH_CHUNKS`).
    pub fn peer_auth_chunks(&self) -> Option<ChunkTypes> {
        self.auth.peer_chunks()
    }

    /// Puts a message into the send buffer (RFC 9260 11.1.5, SEND); its bytes are not copied. A
    /// message larger than the remaining room is accepted if there is any room.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; the message was not accepted.
    pub fn send(&mut self, now: Time, message: Message) -> Result<(), SendError> {
        self.now = now;
        if self.shutdown_requested
            || !(matches!(self.state, State::Established) || self.is_opening())
        {
            return Err(SendError::Closed);
        }
        let (size, max) = (message.payload.len(), self.config.max_message_size() as usize);
        if size == 0 {
            return Err(SendError::Empty);
        }
        if size > max {
            return Err(SendError::TooLarge { size, max });
        }
        if message.stream.0 >= self.handshake.outbound_streams {
            return Err(SendError::NoSuchStream {
                stream: message.stream,
                streams: self.handshake.outbound_streams,
            });
        }
        if let Reliability::Priority(priority) = message.reliability
            && self.sending.may_abandon(self.handshake.extensions)
        {
            sender!(self).make_send_room(now, size, priority);
        }
        if self.send_room() == 0 {
            self.sending.starved = true;
            return Err(SendError::WouldBlock);
        }
        if let Some(side) = &mut self.side {
            side.on_message();
        }
        sender!(self).resume_paths(now);
        if self.sending.flight.bytes() == 0 {
            // After a pause the burst is counted from zero bytes in flight (RFC 9260 6.1 D).
            sender!(self).new_burst();
        }
        self.sending.buffered += size;
        self.sending.largest_message = self.sending.largest_message.max(size);
        self.sending.unreliable |= self.sending.queue.push(now, message);
        self.stats.messages_sent += 1;
        Ok(())
    }

    /// One stream, for sending and receiving.
    pub const fn stream(&mut self, id: StreamId) -> StreamMut<'_> {
        StreamMut { association: self, id }
    }

    /// Streams that this side may send on; the agreed number once the association is established.
    pub const fn outbound_streams(&self) -> u16 {
        self.handshake.outbound_streams
    }

    /// Streams that the peer may send on.
    pub const fn inbound_streams(&self) -> u16 {
        self.handshake.inbound_streams
    }

    /// The adaptation code point in the peer's INIT or INIT ACK; `None` without one (RFC 5061
    /// 4.2.6; `SCTP_ADAPTATION_INDICATION` of RFC 6458 6.1.6). It may change with
    /// [`Event::Restarted`](crate::Event::Restarted).
    pub const fn peer_adaptation_layer(&self) -> Option<u32> {
        self.handshake.peer_adaptation_layer
    }

    /// Free bytes of the peer's receive buffer, as far as this side can compute.
    pub const fn peer_rwnd(&self) -> u32 {
        self.sending.peer_rwnd
    }

    /// Payload bytes given to `send` that the peer has not yet acknowledged.
    pub const fn buffered(&self) -> usize {
        self.sending.buffered
    }

    /// Payload bytes given to `send` that have not been sent yet.
    pub const fn unsent(&self) -> usize {
        self.sending.queue.bytes()
    }

    /// Payload bytes that the send buffer still accepts. Small messages take up more, because their
    /// bookkeeping is memory too, and so are events that wait to be polled.
    pub fn send_room(&self) -> usize {
        self.sending.room_beside(&self.events)
    }

    /// Current size of the send buffer in bytes.
    pub const fn send_buffer(&self) -> usize {
        self.sending.tuning.size()
    }

    /// Current size of the receive buffer in bytes.
    pub const fn receive_buffer(&self) -> usize {
        self.receiving.size()
    }

    /// Takes the next message, or piece of one, of any stream (RFC 9260 11.1.7, RECEIVE).
    pub fn recv(&mut self, now: Time) -> Option<Received> {
        let received = self.receiving.recv()?;
        self.note_received(now, &received);
        Some(received)
    }

    /// Takes the next message, or piece of one, of this stream.
    pub(super) fn recv_from(&mut self, now: Time, stream: StreamId) -> Option<Received> {
        let received = self.receiving.recv_from(stream)?;
        self.note_received(now, &received);
        Some(received)
    }

    /// Adapts the size of the receive buffer.
    pub(super) fn tune_receive_buffer(&mut self, now: Time) {
        // The slowest path decides how long data may wait for earlier data.
        let Self { receiving, paths, handshake, .. } = self;
        receiving.tune(now, || {
            let active = paths.iter().filter(|p| p.state() == PathState::Active);
            active.filter_map(Path::srtt).max().or(handshake.round_trip).unwrap_or(UNKNOWN_RTT)
        });
    }

    /// The application has taken a message, or a piece of one.
    fn note_received(&mut self, now: Time, received: &Received) {
        self.receiving.after_reading();
        if self.receiving.has_news() {
            self.events.push_readable();
        }
        self.tune_receive_buffer(now);
        self.stats.bytes_received += received.payload.len() as u64;
        self.stats.messages_received += u64::from(received.end);
        self.update_window();
    }

    /// From now on, a message that [`recv`](Self::recv) returns takes room in the receive buffer
    /// until [`has_read`](Self::has_read): for an application that queues messages before it uses
    /// them.
    pub fn count_unread(&mut self) {
        self.receiving.count_unread();
    }

    /// The application has used this number of payload bytes of the messages that it took. True if
    /// the peer is to learn of the room at once.
    pub fn has_read(&mut self, bytes: usize) -> bool {
        self.receiving.read(bytes);
        self.update_window()
    }

    /// Sends a SACK if the receive buffer has much more room than the peer knows of.
    fn update_window(&mut self) -> bool {
        // RFC 9260 6.2: "an additional SACK chunk MAY be sent ... to update the a_rwnd".
        let chunk = largest_chunk(&self.receiving, &self.paths);
        if self.state.may_receive_data()
            && self.receiving.should_update(chunk)
            && self.model.procedures.updates_window(self.receiving.announced, chunk)
        {
            self.receiving.ack.demand();
            return true;
        }
        false
    }

    /// Asks the peer to send to this local address (`SCTP_SET_PEER_PRIMARY_ADDR` of RFC 6458 8.3.6;
    /// RFC 5061 4.2.4). [`Event::LocalAddress`](crate::Event::LocalAddress) reports the outcome.
    ///
    /// # Errors
    ///
    /// See [`AddressError`]; no request is sent then.
    pub fn set_peer_primary(&mut self, now: Time, local: IpAddr) -> Result<(), AddressError> {
        let addresses = self.addresses.as_mut().ok_or(AddressError::NotAgreed)?;
        addresses.set_peer_primary(&mut sender!(self), now, local)
    }

    /// Local addresses that the peer has learned; without dynamic addresses, those that the
    /// handshake has listed for an endpoint bound to an unspecified address, or else those of the
    /// paths.
    pub fn local_addresses(&self) -> Vec<IpAddr> {
        match &self.paths.locals {
            Some(locals) => locals.announced.clone(),
            None => {
                let remote = self.paths[self.paths.primary()].remote().ip();
                let listed = self.shared.config.announced.as_ref();
                let listed = listed.into_iter().flat_map(|_| init::usable(&self.shared, remote));
                let mut locals: Vec<IpAddr> = listed.copied().collect();
                if !locals.is_empty() {
                    return locals;
                }
                for path in self.paths.iter().filter(|p| p.state() != PathState::Removed) {
                    if !locals.contains(&path.local()) {
                        locals.push(path.local());
                    }
                }
                locals
            }
        }
    }

    /// Restarts the sequence numbers of streams, of all if none is listed (RFC 6525 6.3.2,
    /// `SCTP_RESET_STREAMS`). Messages sent on them meanwhile wait.
    /// [`Event::StreamsReset`](crate::Event::StreamsReset) reports the result.
    ///
    /// # Errors
    ///
    /// See [`ReconfigError`]; no request is sent then.
    pub fn reset_streams(
        &mut self,
        now: Time,
        reset: StreamReset,
        streams: &[StreamId],
    ) -> Result<(), ReconfigError> {
        self.may_reconfigure()?;
        let outgoing = reset != StreamReset::Incoming;
        let incoming = reset != StreamReset::Outgoing;
        for (wanted, streams_there) in [
            (outgoing, self.handshake.outbound_streams),
            (incoming, self.handshake.inbound_streams),
        ] {
            let beyond = streams.iter().find(|s| s.0 >= streams_there);
            if let Some(stream) = beyond.filter(|_| wanted) {
                let error = ReconfigError::NoSuchStream { stream: *stream, streams: streams_there };
                return Err(error);
            }
        }
        let listed = Streams::listed(streams.iter().map(|s| s.0));
        // Reserve room for the headers of packet and chunk, and the fixed parts of both parameters.
        let room = self.paths.iter().map(Path::max_packet).min().unwrap_or(0);
        let max = room.saturating_sub(64) / 4;
        if listed.list().len() > max {
            return Err(ReconfigError::TooMany { listed: listed.list().len(), max });
        }
        let mut requests = Vec::new();
        if outgoing {
            requests.push(Request::ResetOutgoing(listed.clone()));
        }
        if incoming {
            requests.push(Request::ResetIncoming(listed));
        }
        self.request_reconfig(now, requests);
        Ok(())
    }

    /// Restarts all sequence numbers in both directions, TSNs included, once everything sent has
    /// been acknowledged (RFC 6525 6.3.3, `SCTP_RESET_ASSOC`). Messages sent meanwhile wait.
    /// [`Event::AssociationReset`](crate::Event::AssociationReset) reports the result.
    ///
    /// # Errors
    ///
    /// See [`ReconfigError`]; no request is sent then.
    pub fn reset_association(&mut self, now: Time) -> Result<(), ReconfigError> {
        self.may_reconfigure()?;
        self.request_reconfig(now, vec![Request::ResetAssociation]);
        Ok(())
    }

    /// Adds these numbers of streams in each direction (RFC 6525 6.3.4, `SCTP_ADD_STREAMS`).
    /// [`Event::StreamsAdded`](crate::Event::StreamsAdded) reports the result.
    ///
    /// # Errors
    ///
    /// See [`ReconfigError`]; no request is sent then.
    pub fn add_streams(
        &mut self,
        now: Time,
        outgoing: u16,
        incoming: u16,
    ) -> Result<(), ReconfigError> {
        self.may_reconfigure()?;
        let mut requests = Vec::new();
        for (added, streams, request) in [
            (outgoing, self.handshake.outbound_streams, Request::AddOutgoing(outgoing)),
            (incoming, self.handshake.inbound_streams, Request::AddIncoming(incoming)),
        ] {
            if streams.checked_add(added).is_none() || (outgoing == 0 && incoming == 0) {
                return Err(ReconfigError::NotSoMany { added, streams });
            }
            if added > 0 {
                requests.push(request);
            }
        }
        self.request_reconfig(now, requests);
        Ok(())
    }

    /// Sets which of the peer's requests are granted from now on (RFC 6525 6.3.1,
    /// `SCTP_ENABLE_STREAM_RESET`).
    ///
    /// # Errors
    ///
    /// The two sides have not agreed on stream reconfiguration, or not yet.
    pub fn accept_requests(&mut self, accepted: AcceptedRequests) -> Result<(), ReconfigError> {
        self.reconfig.as_mut().ok_or(ReconfigError::NotAgreed)?.accept(accepted);
        Ok(())
    }

    fn may_reconfigure(&self) -> Result<(), ReconfigError> {
        if !matches!(self.state, State::Established) {
            return Err(ReconfigError::NotEstablished);
        }
        let reconfig = self.reconfig.as_ref().ok_or(ReconfigError::NotAgreed)?;
        if reconfig.is_idle() { Ok(()) } else { Err(ReconfigError::InProgress) }
    }

    fn request_reconfig(&mut self, now: Time, requests: Vec<Request>) {
        if let Some(reconfig) = &mut self.reconfig {
            reconfig.request(&mut sender!(self), now, requests, None);
        }
    }

    // Calls of the endpoint.

    /// Adopts the endpoint's new addresses, after the handshake if it is still going on.
    pub(crate) fn set_shared(&mut self, now: Time, shared: Arc<Shared>) {
        if self.is_opening() {
            self.handshake.shared_later = Some(shared);
            return;
        }
        self.shared = shared;
        if let (Some(present), Some(locals)) =
            (&self.shared.config.host_addresses, &mut self.paths.locals)
        {
            // An address that the host regains counts as new.
            locals.idle.retain(|ip| present.contains(ip));
        }
        if self.state.is_synchronised()
            && let Some(addresses) = &mut self.addresses
        {
            addresses.host_changed(&mut sender!(self), now);
        }
    }

    /// Whether the routes choose this one of the host's addresses, `present`, as source towards the
    /// peer.
    pub(crate) fn is_routed(&self, local: IpAddr, present: &[IpAddr]) -> bool {
        self.paths.are_routed_from(local, present, &self.shared)
    }
}
