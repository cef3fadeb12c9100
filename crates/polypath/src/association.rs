//! The handle of an association.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use polypath_dtls::{Fingerprint, Refusal};
use polypath_proto::policy::{Policy, StreamScheduler};
use polypath_proto::{
    Abandoned, AcceptedRequests, AddressError, AssociationId, AssociationState, AssociationStats,
    AuthKeys, ChunkTypes, CloseReason, Config, ConfigError, Delivery, Extension, KeyError, Message,
    PathError, PathId, Preference, Received, ReconfigError, Reliability, SendError as Refused,
    StreamId, StreamReset, Thresholds, Time, Undelivered,
};
use tokio::sync::broadcast;

use crate::error::{ClosedError, ConnectError, SendError};
use crate::events::{self, Events};
use crate::observed::{self, Path};
use crate::shared::{Entry, Shared, State, Wakes};
use crate::socket::MAX_TRANSMIT;

/// Fraction of the receive buffer that the application may take before the driver is woken to send
/// a window update: one eighth. The driver is woken earlier once everything has been taken.
const WINDOW_UPDATE_SHARE: usize = 8;

/// Bytes of unsent data after which another message gives the driver nothing to do: two transmits.
const BUSY: usize = 2 * MAX_TRANSMIT;

/// Bytes in the send buffer up to which [`Association::try_send_here`] sends at once: with more,
/// messages are sent in fewer system calls if the driver sends them.
const LITTLE: usize = MAX_TRANSMIT;

/// Reason why the lookup of an association cannot fail.
const KEPT: &str = "an association is only forgotten after its last handle has gone";

/// An association with a peer: messages on many streams, over many paths.
///
/// Clones are handles of the same association, and several tasks may use them at the same time.
/// When the last handle (of this type or a [`Stream`](crate::Stream)) is dropped while the
/// association is open, the association is aborted, and undelivered data is lost; call
/// [`shutdown`](Self::shutdown) first to have everything delivered. A shutdown that has begun
/// continues in the background.
#[derive(Clone, Debug)]
pub struct Association(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    id: AssociationId,
    wakes: Arc<Wakes>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(|state| state.let_go(self.id, &self.shared));
    }
}

impl Association {
    pub(crate) fn new(shared: Arc<Shared>, id: AssociationId, wakes: Arc<Wakes>) -> Self {
        Self(Arc::new(Handle { shared, id, wakes }))
    }

    pub(crate) fn wakes(&self) -> &Wakes {
        &self.0.wakes
    }

    /// Calls `f` with the protocol's association.
    fn with<R>(&self, f: impl FnOnce(&mut polypath_proto::Association, Time) -> R) -> R {
        let now = self.0.shared.now();
        self.0.shared.with(|state| {
            let result = f(self.protocol(state), now);
            state.poke();
            result
        })
    }

    fn read<R>(&self, f: impl FnOnce(&polypath_proto::Association) -> R) -> R {
        let state = self.0.shared.lock();
        f(state.proto.association(self.0.id).expect(KEPT))
    }

    fn protocol<'a>(&self, state: &'a mut State) -> &'a mut polypath_proto::Association {
        state.proto.association_mut(self.0.id).expect(KEPT)
    }

    fn entry<'a>(&self, state: &'a mut State) -> &'a mut Entry {
        state.entries.get_mut(&self.0.id).expect(KEPT)
    }

    /// Sends a message; waits while the send buffer is full.
    ///
    /// Ready when the message is in the send buffer, not when it is delivered; wait for
    /// [`drained`](Self::drained) for that. Cancellation-safe: if the future is dropped before it
    /// is ready, no part of the message is sent.
    pub async fn send(&self, message: Message) -> Result<(), SendError> {
        match self.try_send(message.clone()) {
            Err(SendError::WouldBlock) => {}
            done => return done,
        }
        loop {
            // Registered before the attempt, so that a wake-up between the two is not missed.
            let writable = self.wakes().writable.notified();
            match self.try_send(message.clone()) {
                Err(SendError::WouldBlock) => writable.await,
                done => return done,
            }
        }
    }

    /// Sends a message if the send buffer has room, or else returns [`SendError::WouldBlock`].
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        self.send_with(message, false)
    }

    /// As [`try_send`](Self::try_send), for a thread that is not one of the runtime's: if the
    /// endpoint's task sleeps and little is on its way, the packets are sent before the function
    /// returns, which saves waking another thread. Otherwise the task sends them, many at a time.
    ///
    /// After [`SendError::WouldBlock`], it returns this until [`writable`](Self::writable) is
    /// ready: a little room does not suffice. A message with a priority may take the room of
    /// others.
    pub fn try_send_here(&self, message: Message) -> Result<(), SendError> {
        self.send_with(message, true)
    }

    fn send_with(&self, message: Message, here: bool) -> Result<(), SendError> {
        let shared = &self.0.shared;
        let now = shared.now();
        let plain = message.reliability == Reliability::Reliable && message.delivery.is_none();
        let patient = here && !matches!(message.reliability, Reliability::Priority(_));
        let mut waker = None;
        let result = shared.with(|state| {
            if patient && self.waits_for_room(state) {
                return Err(SendError::WouldBlock);
            }
            let before = self.protocol(state).unsent();
            match self.protocol(state).send(now, message) {
                Ok(()) => {
                    // With that much before it, the driver is busy, or waits for acknowledgements.
                    if plain && before >= BUSY && !self.entry(state).overtaking {
                        return Ok(());
                    }
                    if here && self.protocol(state).buffered() <= LITTLE {
                        waker = state.sleeping().cloned();
                    }
                    if waker.is_none() {
                        state.poke();
                    }
                    Ok(())
                }
                Err(Refused::WouldBlock) if state.driver_gone => {
                    Err(SendError::Closed(CloseReason::LocalAbort))
                }
                Err(Refused::WouldBlock) => Err(SendError::WouldBlock),
                Err(Refused::Empty) => Err(SendError::Empty),
                Err(Refused::TooLarge { size, max }) => Err(SendError::TooLarge { size, max }),
                Err(Refused::NoSuchStream { stream, streams }) => {
                    Err(SendError::NoSuchStream { stream, streams })
                }
                Err(_) => Err(match &self.entry(state).closed {
                    Some(reason) => SendError::Closed(reason.clone()),
                    None => SendError::ShuttingDown,
                }),
            }
        });
        if let Some(waker) = waker {
            shared.assist(&waker);
        }
        result
    }

    /// After [`SendError::WouldBlock`]: waits until the send buffer accepts messages again, or
    /// until the association is over. Cancellation-safe.
    pub async fn writable(&self) {
        loop {
            let writable = self.wakes().writable.notified();
            if !self.waits_for_room(&mut self.0.shared.lock()) {
                return;
            }
            writable.await;
        }
    }

    fn waits_for_room(&self, state: &mut State) -> bool {
        self.entry(state).closed.is_none() && self.protocol(state).waits_for_room()
    }

    /// Bytes in the send buffer: not yet sent, or sent and not yet acknowledged.
    pub fn buffered(&self) -> usize {
        self.read(polypath_proto::Association::buffered)
    }

    /// Waits until the peer's SCTP has acknowledged all data that was not abandoned.
    /// Cancellation-safe.
    pub async fn drained(&self) -> Result<(), ClosedError> {
        self.wait_state(|state, this| {
            if this.protocol(state).buffered() == 0 {
                return Some(Ok(()));
            }
            this.entry(state).closed.clone().map(|reason| Err(ClosedError(reason)))
        })
        .await
    }

    /// Waits for the next message, on any stream.
    ///
    /// `Ok(None)` is the end: the association was shut down gracefully, and everything that arrived
    /// has been received. If it ended in any other way, messages that had arrived are still
    /// returned, and then the error gives the reason. A message larger than the receive buffer
    /// arrives in pieces ([`Received::end`]). Cancellation-safe: if the future is dropped, no
    /// message is lost.
    pub async fn recv(&self) -> Result<Option<Received>, ClosedError> {
        self.recv_with(polypath_proto::Association::recv).await
    }

    /// The next message, if one has arrived.
    pub fn try_recv(&self) -> Option<Received> {
        self.take(&mut polypath_proto::Association::recv).ok().flatten()
    }

    /// Waits for the next message on one stream, as [`recv`](Self::recv) does for all. Messages on
    /// other streams stay queued and count against the receive buffer.
    pub async fn recv_from(&self, stream: StreamId) -> Result<Option<Received>, ClosedError> {
        self.recv_with(|association, now| association.stream(stream).recv(now)).await
    }

    async fn recv_with(
        &self,
        mut take: impl FnMut(&mut polypath_proto::Association, Time) -> Option<Received>,
    ) -> Result<Option<Received>, ClosedError> {
        loop {
            let readable = self.wakes().readable.notified();
            match self.take(&mut take) {
                Ok(None) => readable.await,
                Ok(received) => return Ok(received),
                Err(CloseReason::Graceful) => return Ok(None),
                Err(reason) => return Err(ClosedError(reason)),
            }
        }
    }

    /// Returns the message that `take` finds, or the close reason once no more can arrive.
    pub(crate) fn take(
        &self,
        take: &mut impl FnMut(&mut polypath_proto::Association, Time) -> Option<Received>,
    ) -> Result<Option<Received>, CloseReason> {
        let shared = &self.0.shared;
        let now = shared.now();
        shared.with(|state| {
            let association = self.protocol(state);
            let received = take(association, now);
            let update = association.receive_buffer() / WINDOW_UPDATE_SHARE;
            let entry = self.entry(state);
            match received {
                Some(received) => {
                    entry.consumed += received.payload.len();
                    if entry.consumed >= update {
                        entry.consumed = 0;
                        state.poke();
                    }
                    Ok(Some(received))
                }
                None => {
                    if let Some(reason) = &entry.closed {
                        return Err(reason.clone());
                    }
                    if entry.consumed > 0 {
                        entry.consumed = 0;
                        state.poke();
                    }
                    Ok(None)
                }
            }
        })
    }

    /// From now on, a message that was received takes room in the receive buffer until
    /// [`has_read`](Self::has_read): for a program that queues messages before it uses them.
    pub fn count_unread(&self) {
        self.with(|association, _| association.count_unread());
    }

    /// The program has used this number of payload bytes of the messages that it received.
    pub fn has_read(&self, bytes: usize) {
        self.0.shared.with(|state| {
            if self.protocol(state).has_read(bytes) {
                state.poke();
            }
        });
    }

    /// The association's events from now on. At most 256 are queued for a slow receiver, which gets
    /// [`EventsError::Lagged`](crate::EventsError::Lagged) when it misses some.
    pub fn events(&self) -> Events {
        let mut state = self.0.shared.lock();
        let entry = self.entry(&mut state);
        if entry.closed.is_some() {
            // A channel without a sender ends at once.
            return Events(broadcast::channel(1).1);
        }
        let sender = entry.events.get_or_insert_with(|| broadcast::channel(events::CAPACITY).0);
        Events(sender.subscribe())
    }

    /// Changes the keys that authenticate chunks (RFC 6458 8.3.3 to 8.3.5, `SCTP_AUTH_KEY`,
    /// `SCTP_AUTH_ACTIVE_KEY`, `SCTP_AUTH_DELETE_KEY`). The peer needs a key before this side uses
    /// it.
    pub fn change_auth_keys(
        &self,
        change: impl FnOnce(&mut AuthKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        self.with(|association, _| association.change_auth_keys(change))
    }

    /// The key that authenticates sent chunks (`SCTP_AUTH_ACTIVE_KEY`).
    pub fn active_auth_key(&self) -> u16 {
        self.read(|association| association.auth_keys().active())
    }

    /// Keeps the messages that the peer has not acknowledged when the association ends or the peer
    /// restarts, and those that [`Event::SendFailed`](crate::Event::SendFailed) reports, for
    /// [`take_undelivered`](Self::take_undelivered).
    pub fn keep_undelivered(&self) {
        self.with(|association, _| association.keep_undelivered());
    }

    /// Takes the messages that were lost or abandoned (RFC 9260 11.1.14, 11.1.15), if
    /// [`keep_undelivered`](Self::keep_undelivered) was called before. The oldest abandoned ones
    /// are dropped if they exceed the send buffer or are more than 1024.
    pub fn take_undelivered(&self) -> Vec<Undelivered> {
        self.with(|association, _| association.take_undelivered())
    }

    /// Chunk types that this side and the peer accept only authenticated; `None` if the two have
    /// not negotiated authentication.
    pub fn auth_chunks(&self) -> Option<(ChunkTypes, ChunkTypes)> {
        self.read(|association| association.local_auth_chunks().zip(association.peer_auth_chunks()))
    }

    /// Receive window of the peer as last announced, less the data outstanding since then, in bytes
    /// (sstat_rwnd of RFC 6458 8.2.1).
    pub fn peer_rwnd(&self) -> u32 {
        self.read(polypath_proto::Association::peer_rwnd)
    }

    /// SCTP port of the peer.
    pub fn peer_port(&self) -> u16 {
        self.read(polypath_proto::Association::peer_port)
    }

    /// Local addresses that the peer knows, or that are being announced to it.
    pub fn local_addresses(&self) -> Vec<IpAddr> {
        self.read(polypath_proto::Association::local_addresses)
    }

    /// Asks the peer to use this local address as its primary destination (RFC 6458 8.3.6,
    /// `SCTP_SET_PEER_PRIMARY_ADDR`).
    pub fn set_peer_primary(&self, local: IpAddr) -> Result<(), AddressError> {
        self.with(|association, now| association.set_peer_primary(now, local))
    }

    /// Counters of the association.
    pub fn stats(&self) -> AssociationStats {
        self.read(polypath_proto::Association::stats)
    }

    /// Messages that were abandoned, on one stream or on all (RFC 7496 4.3, 4.4). Each was reported
    /// by [`Event::SendFailed`](crate::Event::SendFailed).
    pub fn abandoned(&self, stream: Option<StreamId>) -> Abandoned {
        self.read(|association| association.abandoned(stream))
    }

    /// Sets the scheduler that picks the next stream to send from (SCTP_STREAM_SCHEDULER, RFC 8260
    /// 4.3.2).
    pub fn set_stream_scheduler(&self, policy: impl Into<Policy<dyn StreamScheduler>>) {
        self.with(|association, _| association.set_stream_scheduler(policy));
    }

    /// Sets a stream's priority (smaller numbers first) or weight, depending on the scheduler
    /// (SCTP_STREAM_SCHEDULER_VALUE, RFC 8260 4.3.3).
    pub fn set_stream_value(&self, stream: StreamId, value: u16) -> Result<(), SendError> {
        self.with(|association, _| association.set_stream_value(stream, value)).map_err(|error| {
            match error {
                Refused::NoSuchStream { stream, streams } => {
                    SendError::NoSuchStream { stream, streams }
                }
                // A value has no other error.
                _ => SendError::ShuttingDown,
            }
        })
    }

    /// A stream's value for the scheduler; see [`set_stream_value`](Self::set_stream_value).
    pub fn stream_value(&self, stream: StreamId) -> u16 {
        self.read(|association| association.stream_value(stream))
    }

    /// Whether both sides have agreed on an extension in the handshake.
    pub fn has_agreed_on(&self, extension: Extension) -> bool {
        self.read(|association| association.has_agreed_on(extension))
    }

    /// The state of the association (sstat_state of RFC 6458 8.2.1).
    pub fn state(&self) -> AssociationState {
        self.read(polypath_proto::Association::state)
    }

    /// Sets how the messages of a stream are sent from now on, or with `None` those of all streams:
    /// for the highest rate, as early as possible, or in several copies.
    /// [`Message::delivery`](crate::Message::delivery) sets it for one message.
    pub fn set_delivery(
        &self,
        stream: Option<StreamId>,
        delivery: Delivery,
    ) -> Result<(), SendError> {
        let set = self.0.shared.with(|state| {
            self.entry(state).overtaking = true;
            state.poke();
            self.protocol(state).set_delivery(stream, delivery)
        });
        set.map_err(|error| {
            match error {
                Refused::NoSuchStream { stream, streams } => {
                    SendError::NoSuchStream { stream, streams }
                }
                // It has no other error.
                _ => SendError::ShuttingDown,
            }
        })
    }

    /// Sets how much a path is preferred: whether it carries data while others work. At first
    /// [`EndpointOptions::preferences`](crate::EndpointOptions::preferences) decide.
    pub fn set_preference(&self, path: PathId, preference: Preference) -> Result<(), PathError> {
        self.with(|association, now| association.set_preference(now, path, preference))
    }

    /// Snapshots of all paths, ordered by path id.
    pub fn paths(&self) -> Vec<Path> {
        self.read(observed::paths)
    }

    /// The primary path (RFC 9260 6.4).
    pub fn primary(&self) -> PathId {
        self.read(polypath_proto::Association::primary)
    }

    /// The path that new data is sent on at the moment.
    pub fn current_path(&self) -> PathId {
        self.read(polypath_proto::Association::current_path)
    }

    /// Makes another path the primary one (RFC 9260 11.1.4).
    pub fn set_primary(&self, path: PathId) -> Result<(), PathError> {
        self.with(|association, now| association.set_primary(now, path))
    }

    /// Sets the path's error thresholds: the numbers of consecutive errors after which it becomes
    /// potentially failed, becomes inactive or stops being the primary. `None` sets those of all
    /// present and future paths. They apply from the next error on.
    pub fn set_thresholds(
        &self,
        path: Option<PathId>,
        thresholds: Thresholds,
    ) -> Result<(), PathError> {
        self.with(|association, _| association.set_thresholds(path, thresholds))
    }

    /// Sets the association's error threshold: consecutive errors over all paths (RFC 9260 8.1).
    pub fn set_association_max_retrans(&self, errors: u32) {
        self.with(|association, _| association.set_association_max_retrans(errors));
    }

    /// The constants and policies of the association: those it was made with, and what was changed
    /// since.
    pub fn config(&self) -> Config {
        self.read(|association| association.config().clone())
    }

    /// Sets RTO.Initial, RTO.Min and RTO.Max. The present RTO of each path is limited to the new
    /// range at once; timers that run keep their times.
    pub fn set_rto_limits(
        &self,
        initial: Duration,
        min: Duration,
        max: Duration,
    ) -> Result<(), ConfigError> {
        self.with(|association, _| association.set_rto_limits(initial, min, max))
    }

    /// Sets SACK.Delay and the number of packets after which a SACK is sent at once.
    pub fn set_sack_delay(&self, delay: Duration, every: u32) -> Result<(), ConfigError> {
        self.with(|association, _| association.set_sack_delay(delay, every))
    }

    /// Sets Max.Burst.
    pub fn set_max_burst(&self, packets: u32) -> Result<(), ConfigError> {
        self.with(|association, _| association.set_max_burst(packets))
    }

    /// Sets HB.interval of all paths; `None` ends the HEARTBEATs of idle paths.
    pub fn set_heartbeat_interval(&self, interval: Option<Duration>) -> Result<(), ConfigError> {
        self.with(|association, now| association.set_heartbeat_interval(now, interval))
    }

    /// Limits the payload of a DATA chunk to this number of bytes: larger messages are fragmented.
    /// `None` leaves it to the path MTU.
    pub fn set_max_fragment(&self, bytes: Option<u32>) {
        self.with(|association, _| association.set_max_fragment(bytes));
    }

    /// Sends a HEARTBEAT on a path now (RFC 9260 11.1.10), to check whether it works.
    pub fn request_heartbeat(&self, path: PathId) -> Result<(), PathError> {
        self.with(|association, now| association.request_heartbeat(now, path))
    }

    /// Sends a HEARTBEAT in an IP packet of `packet` bytes, to check whether packets of this size
    /// get through ([`heartbeats_acked`](polypath_proto::PathStats::heartbeats_acked)).
    pub fn probe(&self, path: PathId, packet: u16) -> Result<(), PathError> {
        self.with(|association, now| association.probe(now, path, packet))
    }

    /// Resets the sequence numbers of the listed streams, or of all streams if none is listed (RFC
    /// 6525 6.3.2, `SCTP_RESET_STREAMS`). Data sent on them meanwhile is queued.
    /// [`Event::StreamsReset`](polypath_proto::Event::StreamsReset) reports the result.
    pub fn reset_streams(
        &self,
        reset: StreamReset,
        streams: &[StreamId],
    ) -> Result<(), ReconfigError> {
        self.with(|association, now| association.reset_streams(now, reset, streams))
    }

    /// Resets all sequence numbers in both directions, including TSNs, once everything sent has
    /// been acknowledged (RFC 6525 6.3.3, `SCTP_RESET_ASSOC`).
    /// [`Event::AssociationReset`](polypath_proto::Event::AssociationReset) reports the result.
    pub fn reset_association(&self) -> Result<(), ReconfigError> {
        self.with(|association, now| association.reset_association(now))
    }

    /// Adds streams in each direction (RFC 6525 6.3.4, `SCTP_ADD_STREAMS`).
    /// [`Event::StreamsAdded`](polypath_proto::Event::StreamsAdded) reports the result.
    pub fn add_streams(&self, outgoing: u16, incoming: u16) -> Result<(), ReconfigError> {
        self.with(|association, now| association.add_streams(now, outgoing, incoming))
    }

    /// Sets which of the peer's requests to reset or add streams are granted from now on (RFC 6525
    /// 6.3.1, `SCTP_ENABLE_STREAM_RESET`). Initially all are.
    pub fn accept_requests(&self, accepted: AcceptedRequests) -> Result<(), ReconfigError> {
        self.with(|association, _| association.accept_requests(accepted))
    }

    /// Numbers of outgoing and incoming streams.
    pub fn streams(&self) -> (u16, u16) {
        self.read(|association| (association.outbound_streams(), association.inbound_streams()))
    }

    /// The peer's adaptation layer indication; `None` if the peer sent none, or before the
    /// handshake (RFC 5061 4.2.6; `SCTP_ADAPTATION_INDICATION` of RFC 6458 6.1.6). The local one is
    /// [`adaptation_layer`](polypath_proto::ConfigBuilder::adaptation_layer). It may change at
    /// [`Event::Restarted`](crate::Event::Restarted).
    pub fn peer_adaptation_layer(&self) -> Option<u32> {
        self.read(|association| association.peer_adaptation_layer())
    }

    /// Shuts the association down gracefully: accepts no more messages, delivers those already
    /// sent, and then closes. Ready when it is closed; an error if it ended in any other way.
    ///
    /// Messages that the peer sends meanwhile can still be received. The shutdown begins when the
    /// future is first polled, and dropping the future does not cancel it.
    pub async fn shutdown(&self) -> Result<(), ClosedError> {
        let shared = &self.0.shared;
        let now = shared.now();
        shared.with(|state| {
            let entry = self.entry(state);
            if entry.closed.is_none() && !entry.shutting_down {
                entry.shutting_down = true;
                self.protocol(state).shutdown(now);
                state.poke();
            }
        });
        match self.closed().await {
            CloseReason::Graceful => Ok(()),
            reason => Err(ClosedError(reason)),
        }
    }

    /// Aborts the association at once. The peer receives the reason; undelivered data is lost.
    pub fn abort(&self, reason: impl AsRef<[u8]>) {
        let shared = &self.0.shared;
        let now = shared.now();
        shared.with(|state| {
            self.protocol(state).abort(now, reason.as_ref());
            // The association is closed now: report it without waiting for the driver.
            state.dispatch_events(shared);
            state.poke();
        });
    }

    /// Waits until the association is over, and returns the reason. Cancellation-safe.
    pub async fn closed(&self) -> CloseReason {
        self.wait_state(|state, this| this.entry(state).closed.clone()).await
    }

    /// The certificate fingerprint of the peer, the same on every path; `None` without encryption.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.entry(&mut self.0.shared.lock()).peer
    }

    pub(crate) fn refused(&self) -> Option<Refusal> {
        self.entry(&mut self.0.shared.lock()).refused
    }

    /// Reason why the association ended; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.entry(&mut self.0.shared.lock()).closed.clone()
    }

    /// Waits until the association is established; an error if it ends before.
    /// Cancellation-safe.
    pub async fn established(&self) -> Result<(), CloseReason> {
        self.wait_state(|state, this| {
            let entry = this.entry(state);
            if entry.established {
                return Some(Ok(()));
            }
            entry.closed.clone().map(Err)
        })
        .await
    }

    /// Waits until the association is established, and returns it.
    pub(crate) async fn connected(self) -> Result<Self, ConnectError> {
        self.established().await.map_err(|reason| match self.refused() {
            Some(why) => ConnectError::Refused(why),
            None => ConnectError::Closed(reason),
        })?;
        Ok(self)
    }

    /// Waits until `look` returns a value.
    async fn wait_state<R>(&self, mut look: impl FnMut(&mut State, &Self) -> Option<R>) -> R {
        loop {
            let changed = self.wakes().state.notified();
            if let Some(found) = look(&mut self.0.shared.lock(), self) {
                return found;
            }
            changed.await;
        }
    }
}
