//! The senders of this build: that of RFC 9260, and any other that is registered here.
//!
//! The parameter `procedures` selects one. A sender consists of its `SenderProcedures`
//! where they differ from those of RFC 9260, of policies and profiles of its own, and of what it
//! rejects. Its procedures have no state in themselves: what they remember beyond RFC 9260 belongs
//! to a `Side`, tables of their own per chunk and path.

use std::any::Any;
use std::fmt::Debug;

use crate::association::Sender;
use crate::association::choose::Content;
use crate::config::{Config, Registry};
use crate::constants::ConfigError;
use crate::ids::{PathId, Tsn};
use crate::path::PathState;
use crate::paths::Paths;
use crate::policy::entry::Replacement;
use crate::policy::failover::PathErrorKind;
use crate::policy::scheduler::Turn;
use crate::receive::PendingSack;
use crate::rng::Ties;
use crate::send::Sending;
use crate::time::Time;
use crate::wire::{PacketWriter, Sack, Timestamp};

#[cfg(feature = "ns2")]
pub mod ns2;
mod rfc9260;

/// The senders, the default first.
pub(crate) const SENDERS: &[&SenderModel] = &[
    &rfc9260::SENDER,
    #[cfg(feature = "ns2")]
    &ns2::SENDER,
];

/// A sender: a value of the parameter `procedures`.
#[derive(Debug)]
pub(crate) struct SenderModel {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its procedures.
    pub(super) procedures: &'static dyn SenderProcedures,
    /// The rules that it follows.
    pub(super) rules: Rules,
    /// Its own versions of policies of the registry.
    pub(crate) policies: &'static [Replacement],
    /// Adds its policies and profiles to the standard registry.
    pub(crate) register: fn(Registry) -> Registry,
    /// The reason to reject a configuration with its procedures, if there is one.
    pub(crate) refuses: fn(&Config) -> Option<ConfigError>,
    /// Makes the generator that breaks ties, from `tie_seed`.
    pub(crate) ties: Option<fn(u32) -> Box<dyn Ties>>,
}

/// Rules of a sender that are always the same.
#[expect(clippy::struct_excessive_bools, reason = "each is another rule")]
#[derive(Debug)]
pub(super) struct Rules {
    /// Whether the padding of a chunk counts towards windows (RFC 9260 7.2).
    pub(super) counts_padding: bool,
    /// Whether chunks of different kinds share a packet (RFC 9260 6.10).
    pub(super) bundles: bool,
    /// Whether an UNCONFIRMED address gets nothing but HEARTBEATs and packets of the handshake (RFC
    /// 9260 5.4).
    pub(super) verifies_addresses: bool,
    /// Whether T3-rtx stops when nothing is in flight on its path (RFC 9260 6.3.2, R2).
    pub(super) stops_t3_without_flight: bool,
    /// Whether the sender asks for a SACK without delay where it would stall (RFC 7053).
    pub(super) asks_for_sacks: bool,
    /// Whether a SACK that is due is sent behind retransmissions and before new data.
    pub(super) sends_sacks_first: bool,
    /// Whether dropping a chunk that was acknowledged causes a SACK at once (RFC 9260 6.2).
    pub(super) reports_reneging: bool,
    /// Whether the packets sent in response to an event are limited by Max.Burst, if packets are
    /// counted: other senders count them by procedures of their own.
    pub(super) counts_bursts: bool,
}

/// What the TIMESTAMP chunk of a received packet reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    /// Time of sending of the packet.
    pub(super) sent: Option<u32>,
    /// The timestamp of the packet that the SACK in this packet acknowledges.
    pub(super) echo: Option<u32>,
    /// The chunk counts as DATA that had been received before.
    pub(super) data: bool,
}

impl From<&Timestamp> for Stamps {
    fn from(chunk: &Timestamp) -> Self {
        Self { sent: Some(chunk.sent), echo: chunk.echo, data: false }
    }
}

/// What a sender remembers of an association beyond RFC 9260.
pub(super) trait Side: Any + Debug + Send {
    /// A packet has arrived on a path.
    fn on_packet(&mut self, _ack: &mut PendingSack, _path: PathId) {}

    /// Reads the TIMESTAMP chunk of a packet.
    fn on_timestamp(&mut self, _ack: &mut PendingSack, chunk: &Timestamp) -> Stamps {
        chunk.into()
    }

    /// The time of sending that the TIMESTAMP chunk of the next packet reports; `now` is its
    /// encoding of the current time. `sack` if the packet is sent for its SACK.
    fn stamp(&mut self, _sending: &Sending, _ack: &PendingSack, _sack: bool, now: u32) -> u32 {
        now
    }

    /// The timer for a delayed SACK has expired.
    fn on_sack_timeout(&mut self, _sending: &Sending, _ack: &mut PendingSack) {}

    /// The application has passed a message.
    fn on_message(&mut self) {}

    /// A SACK has arrived, late or not.
    fn on_sack(&mut self) {}

    /// The timers of all paths have been stopped, by a restart of the peer or a shutdown.
    fn stop(&mut self) {}

    /// When a timer that only these procedures have expires.
    fn next_timeout(&self) -> Option<Time> {
        None
    }
}

/// The procedures of a sender.
pub(super) trait SenderProcedures: Debug + Sync {
    /// What it remembers of a new association.
    fn side(&self) -> Option<Box<dyn Side>> {
        None
    }

    // Rules.

    /// Whether a HEARTBEAT may be a pair of full packets to measure the bandwidth.
    fn may_pair_heartbeats(&self, paths: &Paths, now: Time, path: PathId) -> bool;

    /// Whether an error on `path` counts as one of the association (RFC 9260 8.1).
    fn counts_for_association(&self, paths: &Paths, path: PathId, error: PathErrorKind) -> bool;

    /// Whether a SACK may be sent only to announce a window, where `announced` bytes were announced
    /// last, for chunks of `chunk` bytes (RFC 9260 6.2).
    fn updates_window(&self, announced: u32, chunk: u32) -> bool;

    // Events.

    /// Processes the acknowledgements of a SACK that is not late, or, without one, of a SHUTDOWN.
    /// `packets` is the number of packets with DATA that the SACK answers, if it reports that.
    fn acknowledge(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        packets: Option<u32>,
    );

    /// Adopts the window of a SACK.
    fn set_window(&self, s: &mut Sender<'_>, a_rwnd: u32);

    /// A window probe that the peer has dropped was marked lost, to be retransmitted.
    fn on_probe_refused(&self, s: &mut Sender<'_>, tsn: Tsn);

    /// All paths have been confirmed, or have exhausted their probes: data may be sent.
    fn on_paths_confirmed(&self, s: &mut Sender<'_>, now: Time);

    /// A HEARTBEAT on a path has been answered; `was` is the state that the path had.
    fn on_heartbeat_answered(&self, s: &mut Sender<'_>, now: Time, path: PathId, was: PathState);

    /// The failover policy has taken back a path because none is active.
    fn on_path_taken_back(&self, s: &mut Sender<'_>, path: PathId);

    /// A HEARTBEAT on a path has been requested.
    fn on_heartbeat(&self, s: &mut Sender<'_>, now: Time, path: PathId);

    /// A HEARTBEAT that watches a path has been written.
    fn on_heartbeat_written(&self, s: &mut Sender<'_>, path: PathId);

    /// A chunk has been sent on a path, for the time `transmissions`: T3-rtx (RFC 9260 6.3.2, R1).
    fn on_chunk_sent(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        path: PathId,
        tsn: Tsn,
        transmissions: u32,
    );

    /// A packet of new data has been written.
    fn on_new_data_written(&self, s: &mut Sender<'_>, now: Time, path: PathId);

    /// Everything that the current event allows has been sent.
    fn on_burst_over(&self, s: &mut Sender<'_>);

    // Timers.

    /// Handles the timers of the paths that have expired. True if a path's heartbeat period is
    /// over: a time to free memory.
    fn handle_path_timers(&self, s: &mut Sender<'_>, now: Time) -> bool;

    /// A HEARTBEAT was not answered within the RTO (RFC 9260 8.3).
    fn handle_heartbeat_timeout(&self, s: &mut Sender<'_>, now: Time, path: PathId);

    // Paths.

    /// The association is established: begins to probe the paths.
    fn start_path_management(&self, s: &mut Sender<'_>, now: Time, inbound: bool);

    /// Schedules the next HEARTBEAT of a path (RFC 9260 8.3).
    fn schedule_heartbeat(&self, s: &mut Sender<'_>, now: Time, path: PathId);

    // Sending.

    /// Called before the next packet is chosen. Returns whether to look for data that waits for its
    /// transmission or retransmission.
    fn before_sending(&self, s: &mut Sender<'_>, now: Time) -> bool;

    /// The next lost chunk that may be retransmitted now, and its path.
    fn next_retransmission(&self, s: &mut Sender<'_>, now: Time) -> Option<(PathId, Tsn)>;

    /// The path for the next packet of new data, and which data, if it may be sent now.
    fn next_new_data(&self, s: &mut Sender<'_>, now: Time) -> Option<Turn>;

    /// Writes the lowest lost chunks, as many as fit one packet (RFC 9260 6.3.3 (E3), 7.2.4 (3)).
    fn write_retransmissions(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        path: PathId,
        content: Content,
        w: &mut PacketWriter<'_>,
    );
}
