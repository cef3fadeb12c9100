//! An association: holds its owners, and dispatches packets, timers and calls to them.
//!
//! Each piece of state has an owner, and each procedure is a method of the owner whose state it
//! changes. Procedures that concern both the data to send and the paths are methods of [`Sender`],
//! those that concern received data of [`Receiver`]: views that borrow some of the association's
//! fields. Only the files of this list see the association itself: [`calls`] (the application),
//! [`received`] (packets), [`transmit`] (building packets), [`timers`], [`icmp`], [`invariants`],
//! and the transitions of its state, [`state`], [`connect`] (RFC 9260 5.1), [`collision`] (5.2),
//! [`shutdown`] (9) and [`undelivered`] (11.1.14). `scripts/check-layers.py` has the list.
//!
//! The data to send: [`choose`] (6.1), [`write`] (6.1, 6.10), [`acknowledge`] (6.2.1), [`losses`]
//! and [`congestion`] (7.2), [`recovery`] (RFC 8985), [`t3`] (6.3.3), [`abandon`]. The paths:
//! [`paths`] (5.4, 8.1, 8.2), [`heartbeat`] (8.3), [`silence`], [`mtu`]. Received data: [`data`]
//! (6.2), [`interleave`], [`forward`], [`nr_sack`]. Extensions with state: [`auth`], [`addresses`],
//! [`reconfig`], [`ecn`].

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::Config;
use crate::cookie::StateCookie;
use crate::error::{ConnectError, SendError};
use crate::event::{CloseReason, Event, Message, Received};
use crate::events::Events;
use crate::extension::{Extension, Extensions};
use crate::handshake::Handshake;
use crate::ids::{AssociationId, PathId, Ppid, StreamId, Tsn, VerificationTag};
use crate::outbox::Outbox;
use crate::path::Path;
use crate::paths::Paths;
use crate::receive::Receiving;
use crate::rng::{Rng, Secret};
use crate::send::Sending;
use crate::shared::{Remote, Shared};
use crate::stats::AssociationStats;
use crate::time::Time;
use crate::transmit::FourTuple;

/// Borrows the sending half of an association, and leaves its other fields free.
macro_rules! sender {
    ($a:expr) => {
        $crate::association::Sender {
            now: $a.now,
            config: &$a.config,
            shared: &$a.shared,
            model: $a.model,
            side: &mut $a.side,
            agreed: $a.handshake.extensions,
            phase: $a.state.phase(),
            paths: &mut $a.paths,
            sending: &mut $a.sending,
            outbox: &mut $a.outbox,
            events: &mut $a.events,
            stats: &mut $a.stats,
            rng: &mut $a.rng,
        }
    };
}

/// Borrows the receiving half of an association, and leaves its other fields free.
macro_rules! receiver {
    ($a:expr) => {
        $crate::association::Receiver {
            model: $a.model,
            agreed: $a.handshake.extensions,
            may_receive_data: $a.state.may_receive_data(),
            synchronised: $a.state.is_synchronised(),
            receiving: &mut $a.receiving,
            paths: &mut $a.paths,
            marks: &mut $a.marks,
            reconfig: $a.reconfig.as_deref(),
            outbox: &mut $a.outbox,
            events: &mut $a.events,
            stats: &mut $a.stats,
        }
    };
}

#[macro_use]
mod reconfig;

mod abandon;
mod acknowledge;
mod addresses;
mod adjust;
mod auth;
mod blocking;
mod buffer_splitting;
mod calls;
mod choose;
mod collision;
mod congestion;
mod connect;
mod copies;
mod data;
mod ecn;
mod forward;
mod heartbeat;
mod icmp;
mod immediate;
mod interleave;
mod invariants;
mod losses;
mod measure;
mod mtu;
mod no_active_path;
mod nr_sack;
mod outage;
mod paths;
pub mod procedures;
mod received;
mod recovery;
mod shutdown;
mod silence;
mod state;
mod t3;
mod timers;
mod transmit;
mod undelivered;
mod write;

pub(crate) use auth::authenticates_cookie;
use ecn::Marks;
pub use invariants::Budget;
use procedures::Side;
pub(crate) use procedures::{SENDERS, SenderModel};
use reconfig::Reconfig;
pub use reconfig::{AcceptedRequests, StreamReset};
pub use state::AssociationState;
use state::{CookieWait, State};

/// One association with a peer, over all paths between the two.
#[derive(Debug)]
pub struct Association {
    id: AssociationId,
    shared: Arc<Shared>,
    config: Config,
    state: State,
    shutdown_requested: bool,
    now: Time,
    handshake: Handshake,
    paths: Paths,
    sending: Sending,
    receiving: Receiving,
    outbox: Outbox,
    events: Events,
    stats: AssociationStats,
    rng: Rng,
    reconfig: Option<Box<Reconfig>>,
    auth: auth::Keys,
    addresses: Option<Box<addresses::Addresses>>,
    marks: Marks,
    model: &'static SenderModel,
    side: Option<Box<dyn Side>>,
}

impl Association {
    fn new(
        id: AssociationId,
        shared: Arc<Shared>,
        config: Config,
        secret: &mut Secret,
        now: Time,
        tags: (VerificationTag, Tsn),
        peer_port: u16,
    ) -> Self {
        let wait = CookieWait {
            t1: Time::FAR_FUTURE,
            retransmits: 0,
            path: PathId(0),
            preservative: None,
            stale: 0,
        };
        let model = config.procedures().sender();
        let mut sending = Sending::new(tags.1, &config, &shared.pool);
        sending.flight.count_padding(model.rules.counts_padding);
        let key = secret.next_bytes();
        Self {
            id,
            state: State::CookieWait(wait),
            shutdown_requested: false,
            now,
            handshake: Handshake::new(&config, tags, peer_port, key),
            paths: Paths::new(&config, key),
            sending,
            receiving: Receiving::new(&config, &shared.pool),
            outbox: Outbox::default(),
            events: Events::default(),
            stats: AssociationStats::default(),
            rng: Rng::new(&secret.fork()).with_ties(config.ties()),
            reconfig: None,
            auth: auth::Keys::new(shared.config.auth_keys.clone()),
            addresses: None,
            marks: Marks::default(),
            model,
            side: model.procedures.side(),
            shared,
            config,
        }
    }

    /// An association opened by this side.
    #[expect(clippy::too_many_arguments, reason = "called in one place, each is another thing")]
    pub(crate) fn connect(
        id: AssociationId,
        shared: Arc<Shared>,
        config: Config,
        secret: &mut Secret,
        now: Time,
        tags: (VerificationTag, Tsn),
        peer_port: u16,
        remotes: &[Remote],
    ) -> Result<Self, ConnectError> {
        let mut a = Self::new(id, shared, config, secret, now, tags, peer_port);
        for (index, remote) in remotes.iter().enumerate() {
            let ip = remote.address.ip();
            let locals = &a.shared.config.addresses;
            let by_route = || a.shared.config.routes.local_for(ip, index, locals);
            if let Some(local) = remote.local.or_else(by_route) {
                sender!(a).add_path(now, local, remote.address);
            }
        }
        if a.config.full_mesh() {
            for remote in remotes {
                sender!(a).learn_addresses(now, &[remote.address.ip()], remote.address.port());
            }
        }
        if a.paths.is_empty() {
            return Err(ConnectError::NoPath);
        }
        a.paths.iter_mut().for_each(Path::confirm_address);
        a.begin_connect(now);
        Ok(a)
    }

    /// The association that a valid cookie describes (RFC 9260 5.1 D).
    pub(crate) fn accept(
        id: AssociationId,
        shared: Arc<Shared>,
        secret: &mut Secret,
        now: Time,
        cookie: &StateCookie,
        from: FourTuple,
    ) -> Option<Self> {
        let config = shared.config.association.clone();
        let tags = (cookie.local_tag, cookie.local_initial_tsn);
        let mut a = Self::new(id, shared, config, secret, now, tags, cookie.peer_port);
        a.handshake.peer_tag = cookie.peer_tag;
        a.handshake.round_trip = Some(now.since(cookie.created));
        a.agree_on(cookie.extensions, cookie.authentication.as_ref(), cookie.adaptation_layer);
        a.set_streams(cookie.outbound_streams, cookie.inbound_streams);
        a.start_receiving(cookie.peer_initial_tsn, cookie.peer_rwnd);
        // The first path is the primary.
        a.take_addresses(now, cookie, from)?;
        a.become_established(now, true);
        a.push_cookie_ack(now, from);
        Some(a)
    }

    /// The association's number in the endpoint.
    pub const fn id(&self) -> AssociationId {
        self.id
    }

    /// The association's constants and policies.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The association's counters.
    pub const fn stats(&self) -> AssociationStats {
        self.stats
    }

    /// Whether the association is established: data can be sent and received.
    pub const fn is_established(&self) -> bool {
        matches!(self.state, State::Established)
    }

    /// Whether this side has begun a handshake that is not complete.
    pub(crate) const fn is_opening(&self) -> bool {
        matches!(self.state, State::CookieWait(_) | State::CookieEchoed(_))
    }

    /// Whether the association has ended.
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// Why the association has ended; `None` before.
    pub const fn close_reason(&self) -> Option<&CloseReason> {
        match &self.state {
            State::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether a message was rejected because the send buffer was full, and
    /// [`Event::Writable`](crate::Event::Writable) has not followed yet.
    #[must_use]
    pub const fn waits_for_room(&self) -> bool {
        self.sending.starved
    }

    /// The next event. Call it until it returns `None`, after every other call.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop();
        if self.sending.starved {
            // Queued events count towards the send buffer.
            self.sending.report_room(&mut self.events);
        }
        event
    }

    /// Whether `poll_event` has something to return.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) const fn local_tag(&self) -> VerificationTag {
        self.handshake.local_tag
    }

    /// SCTP port of the peer.
    pub const fn peer_port(&self) -> u16 {
        self.handshake.peer_port
    }

    pub(crate) const fn path_changes(&self) -> u64 {
        self.paths.changes()
    }

    /// All addresses of the peer, with paths or without: each of them identifies the association
    /// (RFC 9260 5.1.2 D).
    pub(crate) fn peer_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.paths.peer_addresses()
    }

    /// Whether something is still to be sent: an ABORT, a SHUTDOWN COMPLETE.
    pub(crate) fn has_control(&self) -> bool {
        !self.outbox.is_idle()
    }
}

/// What the association's state permits (RFC 9260 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Phase {
    /// The handshake is complete on one side at least, and the association has not ended.
    synchronised: bool,
    /// DATA may be sent (RFC 9260 6, 9.2).
    may_send_data: bool,
    /// A SHUTDOWN is sent once everything is acknowledged.
    shutdown_pending: bool,
}

/// The sending half of an association and its paths, borrowed for one event. Procedures that
/// concern both, such as the processing of a SACK or of T3-rtx, are its methods. It changes neither
/// the association's state nor its receiving half; the handshake's results are read only.
struct Sender<'a> {
    now: Time,
    config: &'a Config,
    shared: &'a Shared,
    model: &'static SenderModel,
    /// What its procedures remember.
    #[allow(dead_code, reason = "the procedures of RFC 9260 need no tables of their own")]
    side: &'a mut Option<Box<dyn Side>>,
    /// Extensions that both sides offered.
    agreed: Extensions,
    phase: Phase,
    paths: &'a mut Paths,
    sending: &'a mut Sending,
    outbox: &'a mut Outbox,
    events: &'a mut Events,
    stats: &'a mut AssociationStats,
    rng: &'a mut Rng,
}

impl Sender<'_> {
    fn has(&self, extension: Extension) -> bool {
        self.agreed.contains(extension)
    }

    /// Whether the error count of the association has exceeded its threshold: nothing more is sent,
    /// and the association ends after the current event (RFC 9260 8.1).
    fn is_over(&self) -> bool {
        self.paths.are_unreachable()
    }
}

/// What the peer did against the protocol, which ends the association (RFC 9260 3.3.10.13).
type Violation = &'static str;

/// The receiving half of an association, borrowed for one packet. Of the sending half it has
/// nothing.
struct Receiver<'a> {
    model: &'static SenderModel,
    /// Extensions that both sides offered.
    agreed: Extensions,
    /// DATA is accepted (RFC 9260 6).
    may_receive_data: bool,
    /// The handshake is complete on one side at least, and the association has not ended.
    synchronised: bool,
    receiving: &'a mut Receiving,
    paths: &'a mut Paths,
    marks: &'a mut Marks,
    reconfig: Option<&'a Reconfig>,
    outbox: &'a mut Outbox,
    events: &'a mut Events,
    stats: &'a mut AssociationStats,
}

impl Receiver<'_> {
    fn has(&self, extension: Extension) -> bool {
        self.agreed.contains(extension)
    }
}

/// One stream of an association.
#[derive(Debug)]
pub struct StreamMut<'a> {
    association: &'a mut Association,
    id: StreamId,
}

impl StreamMut<'_> {
    /// Sends an ordered message on this stream.
    ///
    /// # Errors
    ///
    /// As [`Association::send`].
    pub fn send(&mut self, now: Time, ppid: Ppid, payload: Bytes) -> Result<(), SendError> {
        self.association.send(now, Message { ppid, ..Message::new(self.id, payload) })
    }

    /// Takes the next message, or piece of one, of this stream.
    pub fn recv(&mut self, now: Time) -> Option<Received> {
        self.association.recv_from(now, self.id)
    }
}
