//! Stream reconfiguration (RFC 6525): resetting and adding streams by RE-CONFIG chunks.
//!
//! [`requests`] has this side's requests and their results, [`answers`] the peer's requests,
//! [`pending_response`] a response that data must not overtake. The state exists only if both sides
//! have offered the extension.
//!
//! A stream's reset must not overtake its messages: messages sent on such a stream meanwhile wait
//! (5.1.2 A1), and the request is sent when all earlier ones have TSNs. A reset of the association
//! waits until nothing is outstanding, so that it loses nothing; RFC 6525 5.1.4 and 5.2.4 would
//! also allow treating outstanding data as acknowledged.

/// Borrows both halves of an association, for the reconfiguration of its streams.
macro_rules! halves {
    ($a:expr) => {
        $crate::association::reconfig::Halves {
            sender: sender!($a),
            receiving: &mut $a.receiving,
            marks: &mut $a.marks,
            inbound_streams: &mut $a.handshake.inbound_streams,
            outbound_streams: &mut $a.handshake.outbound_streams,
        }
    };
}

mod answers;
mod pending_response;
mod requests;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::Sender;
use super::ecn::Marks;
use crate::ids::{PathId, Tsn, VerificationTag};
use crate::outbox::Control;
use crate::policy::failover::PathErrorKind;
use crate::receive::Receiving;
use crate::streams::Streams;
use crate::time::Time;
use crate::wire::{
    Checksum, CommonHeader, DoesNotFit, PacketWriter, ReConfig, ReconfigParameter, ReconfigWriter,
};

use pending_response::PendingResponse;
pub(super) use pending_response::write_response;
use requests::Ours;
pub(super) use requests::Request;
pub use requests::StreamReset;

/// Which requests of the peer are granted; others are denied (RFC 6525 6.3.1,
/// `SCTP_ENABLE_STREAM_RESET`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedRequests {
    /// Resets of streams.
    pub reset_streams: bool,
    /// Resets of the association.
    pub reset_association: bool,
    /// More streams.
    pub add_streams: bool,
}

impl AcceptedRequests {
    /// Grants all requests, which is the default.
    pub const ALL: Self = Self { reset_streams: true, reset_association: true, add_streams: true };
}

/// State of the requests of both sides.
#[derive(Debug)]
pub(super) struct Reconfig {
    accepted: AcceptedRequests,
    /// Sequence number of this side's next request.
    next: u32,
    ours: Option<Ours>,
    /// This side has requested a reset of the association, which may have been performed: the
    /// peer's data may have new numbers or old ones. It is dropped, and the peer will retransmit
    /// it.
    blind: bool,
    /// Sequence number of the peer's next request.
    expected: u32,
    /// The last answer to that request was "In progress".
    in_progress: bool,
    /// The last two responses with the requests' numbers, to repeat them if they are lost.
    answers: VecDeque<(u32, Bytes)>,
    deferred: Option<Deferred>,
    /// Until this time, new data waits for the peer to repeat its request to reset the association.
    quiet: Option<Time>,
    /// A reset of the association has changed this side's TSNs: SACKs for earlier ones may still
    /// arrive, after any number of further resets.
    renumbered: bool,
    /// The response to a reset of the association that the peer may not have received.
    pending_response: Option<PendingResponse>,
}

/// A reset of the peer's streams that waits until everything up to a TSN has arrived (RFC 6525
/// 5.2.2 E2).
#[derive(Debug)]
struct Deferred {
    request: u32,
    last_tsn: Tsn,
    streams: Streams,
    path: PathId,
}

/// Serialises the parameters that `write` writes.
fn parameters(
    write: impl FnOnce(&mut ReconfigWriter<'_>) -> Result<(), DoesNotFit>,
) -> Result<Bytes, DoesNotFit> {
    let mut buf = [0; 4096];
    let header =
        CommonHeader { source_port: 0, destination_port: 0, verification_tag: VerificationTag(0) };
    let mut w = PacketWriter::new(&mut buf, header);
    let start = w.len() + crate::wire::CHUNK_HEADER_LEN;
    w.re_config(write)?;
    let end = w.finish(Checksum::Ignore);
    Ok(Bytes::copy_from_slice(&buf[start..end]))
}

/// RFC 6525 3.1: two responses may share a chunk, and so may a response followed by a request to
/// reset outgoing streams.
fn may_share_a_chunk(first: &[u8], second: &[u8]) -> bool {
    use crate::wire::ReconfigParameters as List;
    use ReconfigParameter::{OutgoingReset, Response};
    let mut list = List::new(first).iter().chain(List::new(second).iter());
    let (first, second, more) = (list.next(), list.next(), list.next());
    matches!(first, Some(Ok(Response { .. })))
        && matches!(second, Some(Ok(Response { .. } | OutgoingReset { .. })))
        && more.is_none()
}

impl Reconfig {
    /// Counts the peer's request `number` as processed, unless it is in progress.
    fn note_result(&mut self, number: u32, in_progress: bool) {
        self.in_progress = in_progress;
        if !in_progress {
            self.expected = number.wrapping_add(1);
        }
    }

    /// Stores the response to this request, in case the request is repeated.
    fn keep_answer(&mut self, request: u32, body: &Bytes) {
        self.answers.truncate(1);
        self.answers.push_front((request, body.clone()));
    }
}

/// Both halves of the association, and its numbers of streams: what reconfiguration changes.
pub(super) struct Halves<'a> {
    pub(super) sender: Sender<'a>,
    pub(super) receiving: &'a mut Receiving,
    pub(super) marks: &'a mut Marks,
    pub(super) inbound_streams: &'a mut u16,
    pub(super) outbound_streams: &'a mut u16,
}

impl Reconfig {
    /// Begins with both initial TSNs, where the sequence numbers of requests begin (RFC 6525 4.1).
    pub(super) fn new(initial: Tsn, peer_initial: Tsn) -> Self {
        Self {
            accepted: AcceptedRequests::ALL,
            next: initial.0,
            ours: None,
            blind: false,
            expected: peer_initial.0,
            in_progress: false,
            answers: VecDeque::new(),
            deferred: None,
            quiet: None,
            renumbered: false,
            pending_response: None,
        }
    }

    /// Sets which of the peer's requests are granted from now on.
    pub(super) const fn accept(&mut self, accepted: AcceptedRequests) {
        self.accepted = accepted;
    }

    /// Whether no request of this side is outstanding, and none that the peer repeats.
    pub(super) const fn is_idle(&self) -> bool {
        self.ours.is_none() && self.quiet.is_none()
    }

    /// Processes a RE-CONFIG chunk of the peer (RFC 6525 5.2).
    pub(super) fn handle(
        &mut self,
        h: &mut Halves<'_>,
        now: Time,
        path: PathId,
        chunk: &ReConfig<'_>,
    ) {
        let mark = h.sender.outbox.len();
        self.handle_parameters(h, now, path, chunk);
        // RFC 6525 5.2.1: "If multiple parameters have to be returned, they MUST be put into one
        // RE_CONFIG chunk."
        h.sender.outbox.join_reconfig(mark, may_share_a_chunk);
    }

    fn handle_parameters(
        &mut self,
        h: &mut Halves<'_>,
        now: Time,
        path: PathId,
        chunk: &ReConfig<'_>,
    ) {
        // RFC 6525 3.1: one or two parameters.
        for parameter in chunk.parameters.iter().take(2) {
            match parameter {
                Ok(ReconfigParameter::Response { response, result, next_tsns }) => {
                    self.handle_response(h, now, response, result, next_tsns);
                }
                Ok(request) if request.request().is_some() => {
                    self.answer(h, now, path, &request);
                }
                // RFC 6525 4: processing stops at an unknown type.
                _ => {
                    h.sender.stats.dropped += 1;
                    return;
                }
            }
        }
    }

    /// When the next timer of a request expires.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let timers = [self.ours.as_ref().and_then(|ours| ours.timer), self.quiet];
        timers.into_iter().flatten().min()
    }

    /// The re-configuration timer may have expired (RFC 6525 5.1.1): retransmits the chunk.
    pub(super) fn handle_timeout(&mut self, s: &mut Sender<'_>, now: Time) {
        if self.quiet.is_some_and(|t| t <= now) {
            // The peer has abandoned its request.
            self.quiet = None;
            s.sending.queue.release();
        }
        if !s.phase.may_send_data && self.ours.take().is_some() {
            // The shutdown has begun, and nothing waits for the response.
            s.sending.queue.release();
        }
        let Some(ours) = self.ours.as_mut().filter(|o| o.timer.is_some_and(|t| t <= now)) else {
            return;
        };
        let (old, waits) = (ours.path, std::mem::take(&mut ours.deferred_by_peer));
        if !waits {
            s.paths[old].back_off(now);
            s.count_error(now, old, PathErrorKind::DataTimeout);
            if s.is_over() {
                return;
            }
        }
        let path = if waits { old } else { s.alternate_for_control(old) };
        let rto = s.paths[path].rto();
        let mut again = now + rto;
        if waits {
            // After a request to reset the association, data is dropped for a round trip. A random
            // delay avoids keeping in step with the peer's T3-rtx: the data that the peer waits for
            // would never be acknowledged.
            again = again
                + Duration::from_nanos(
                    s.rng.below(u64::try_from(rto.as_nanos()).unwrap_or(u64::MAX - 1) + 1),
                );
        }
        let Some(ours) = &mut self.ours else { return };
        (ours.path, ours.timer) = (path, Some(again));
        self.blind = ours.resets_association();
        let body = ours.body.clone().unwrap_or_default();
        s.outbox.push(path, Control::Reconfig(body));
    }

    /// Whether the peer's data may have new numbers or old ones.
    pub(super) const fn is_blind(&self) -> bool {
        self.blind
    }

    /// Whether all numbers of the peer may restart before its response arrives.
    pub(super) fn awaits_renumbering(&self) -> bool {
        self.ours.as_ref().is_some_and(Ours::resets_association)
    }

    /// Whether this side had other TSNs before a reset of the association.
    pub(super) const fn is_renumbered(&self) -> bool {
        self.renumbered
    }
}
