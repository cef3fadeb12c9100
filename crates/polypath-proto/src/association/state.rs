//! The states of an association (RFC 9260 4). A state owns its timers: a timer that cannot run in a
//! state does not exist in it. All transitions are in this file, except for a restart by the peer.
//!
//! ```text
//!            connect                    INIT ACK                   COOKIE ACK
//!   (new) -----------> CookieWait ------------------> CookieEchoed -----------+
//!                                                                             v
//!   (new) <cookie of the peer's COOKIE ECHO> ---------------------------> Established
//!                                                       shutdown |            | SHUTDOWN
//!                                                                v            v
//!                                                    ShutdownPending   ShutdownReceived
//!                                              all acked |                    | all acked
//!                                                        v                    v
//!                                                  ShutdownSent -------> ShutdownAckSent
//!                                             SHUTDOWN ACK |  SHUTDOWN        | SHUTDOWN COMPLETE
//!                                                          v                  v
//!                                                             Closed (reason)
//! ```
//! An ABORT, an error threshold (8.1) or a timer that has reached its limit leads from every state
//! to `Closed`.

use bytes::Bytes;

use super::Association;
use super::Phase;
use crate::event::{CloseReason, Event};
use crate::ids::PathId;
use crate::time::Time;

/// States of an association (RFC 9260 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssociationState {
    /// The INIT has been sent.
    CookieWait,
    /// The COOKIE ECHO has been sent.
    CookieEchoed,
    /// Data flows in both directions.
    Established,
    /// This side shuts down once everything is acknowledged.
    ShutdownPending,
    /// This side has sent its SHUTDOWN.
    ShutdownSent,
    /// The peer has sent its SHUTDOWN; this side has data that is not acknowledged.
    ShutdownReceived,
    /// This side has answered the peer's SHUTDOWN.
    ShutdownAckSent,
    /// The association is over.
    Closed,
}

/// T1-init runs (RFC 9260 5.1 A).
#[derive(Debug)]
pub(super) struct CookieWait {
    /// T1-init.
    pub(super) t1: Time,
    /// INITs sent after the first.
    pub(super) retransmits: u32,
    /// The path that carried the last INIT.
    pub(super) path: PathId,
    /// Milliseconds by which the peer's cookie should live longer (5.2.6).
    pub(super) preservative: Option<u32>,
    /// How often the peer has reported the cookie as stale.
    pub(super) stale: u32,
}

/// T1-cookie runs (RFC 9260 5.1 C).
#[derive(Debug)]
pub(super) struct CookieEchoed {
    /// T1-cookie.
    pub(super) t1: Time,
    /// COOKIE ECHOs sent after the first.
    pub(super) retransmits: u32,
    pub(super) path: PathId,
    pub(super) cookie: Bytes,
    /// When the first COOKIE ECHO was sent.
    pub(super) since: Time,
    pub(super) stale: u32,
}

/// T2-shutdown runs, and perhaps T5-shutdown-guard (RFC 9260 9.2).
#[derive(Debug)]
pub(super) struct ShutdownTimers {
    pub(super) t2: Time,
    /// Guards the whole shutdown at the side that has sent a SHUTDOWN.
    pub(super) t5: Option<Time>,
    /// The path that carried the last SHUTDOWN or SHUTDOWN ACK.
    pub(super) path: PathId,
}

#[derive(Debug)]
pub(super) enum State {
    CookieWait(CookieWait),
    CookieEchoed(CookieEchoed),
    Established,
    /// Waits until everything is acknowledged.
    ShutdownPending,
    /// The SHUTDOWN has been sent.
    ShutdownSent(ShutdownTimers),
    /// The peer's SHUTDOWN has arrived, last over this path; outstanding data is still sent.
    ShutdownReceived(PathId),
    /// The SHUTDOWN ACK has been sent.
    ShutdownAckSent(ShutdownTimers),
    Closed(CloseReason),
}

impl State {
    /// The next instant at which a timer of the state expires.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self {
            Self::CookieWait(s) => Some(s.t1),
            Self::CookieEchoed(s) => Some(s.t1),
            Self::ShutdownSent(s) | Self::ShutdownAckSent(s) => Time::earliest(&[Some(s.t2), s.t5]),
            Self::Established
            | Self::ShutdownPending
            | Self::ShutdownReceived(_)
            | Self::Closed(_) => None,
        }
    }

    /// Whether the peer's INIT parameters are known and one side has accepted the other's cookie.
    pub(super) const fn is_synchronised(&self) -> bool {
        !matches!(self, Self::CookieWait(_) | Self::CookieEchoed(_) | Self::Closed(_))
    }

    /// The state without its timers.
    pub(super) const fn public(&self) -> AssociationState {
        match self {
            Self::CookieWait(_) => AssociationState::CookieWait,
            Self::CookieEchoed(_) => AssociationState::CookieEchoed,
            Self::Established => AssociationState::Established,
            Self::ShutdownPending => AssociationState::ShutdownPending,
            Self::ShutdownSent(_) => AssociationState::ShutdownSent,
            Self::ShutdownReceived(_) => AssociationState::ShutdownReceived,
            Self::ShutdownAckSent(_) => AssociationState::ShutdownAckSent,
            Self::Closed(_) => AssociationState::Closed,
        }
    }

    /// What the state permits.
    pub(super) const fn phase(&self) -> Phase {
        Phase {
            synchronised: self.is_synchronised(),
            may_send_data: self.may_send_data(),
            shutdown_pending: matches!(self, Self::ShutdownPending),
        }
    }

    /// Whether ASCONF and ASCONF-ACK may be sent (RFC 5061 5.1.1 C4).
    pub(super) const fn may_change_addresses(&self) -> bool {
        self.is_synchronised() && !matches!(self, Self::ShutdownAckSent(_))
    }

    /// Whether DATA may be sent, new or retransmitted (RFC 9260 6, 9.2).
    pub(super) const fn may_send_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived(_))
    }

    /// Whether DATA is accepted (RFC 9260 6: until the peer has sent its SHUTDOWN).
    pub(super) const fn may_receive_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent(_))
    }
}

impl Association {
    /// The handshake is complete.
    pub(super) fn become_established(&mut self, now: Time, inbound: bool) {
        debug_assert!(!self.state.is_synchronised(), "established twice");
        self.state = State::Established;
        self.paths.clear_association_errors();
        self.events.push_always(Event::Established { inbound });
        let mut s = sender!(self);
        s.model.procedures.start_path_management(&mut s, now, inbound);
        s.paths.start_mtu_searches(now);
        self.take_shared(now);
        if self.shutdown_requested {
            self.begin_shutdown(now);
        }
    }

    /// The handshake begins, or begins again for another cookie (RFC 9260 5.2.6).
    pub(super) fn become_cookie_wait(&mut self, wait: CookieWait) {
        self.state = State::CookieWait(wait);
    }

    pub(super) fn become_cookie_echoed(&mut self, echoed: CookieEchoed) {
        debug_assert!(matches!(self.state, State::CookieWait(_)), "cookie echoed twice");
        self.state = State::CookieEchoed(echoed);
    }

    pub(super) fn become_shutdown_pending(&mut self) {
        debug_assert!(matches!(self.state, State::Established), "shutdown pending twice");
        self.state = State::ShutdownPending;
    }

    pub(super) fn become_shutdown_sent(&mut self, timers: ShutdownTimers) {
        debug_assert!(matches!(self.state, State::ShutdownPending), "shutdown sent twice");
        self.state = State::ShutdownSent(timers);
    }

    pub(super) fn become_shutdown_received(&mut self, path: PathId) {
        debug_assert!(
            matches!(self.state, State::Established | State::ShutdownPending),
            "shutdown received twice"
        );
        self.state = State::ShutdownReceived(path);
        self.events.push_always(Event::PeerShutdown);
    }

    pub(super) fn become_shutdown_ack_sent(&mut self, timers: ShutdownTimers) {
        debug_assert!(
            matches!(self.state, State::ShutdownReceived(_) | State::ShutdownSent(_)),
            "shutdown acked twice"
        );
        self.state = State::ShutdownAckSent(timers);
    }

    /// Ends the association. Received data stays readable.
    pub(super) fn become_closed(&mut self, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        self.state = State::Closed(reason.clone());
        self.paths.stop_timers();
        self.receiving.ack.clear();
        if !reason.is_graceful() {
            self.keep_lost();
        }
        self.drop_outstanding();
        self.events.push_always(Event::Closed(reason));
    }
}
