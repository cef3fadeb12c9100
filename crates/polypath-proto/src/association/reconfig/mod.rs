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

mod answers;
mod pending_response;
mod requests;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::Association;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn, VerificationTag};
use crate::outbox::Control;
use crate::policy::failover::PathErrorKind;
use crate::streams::Streams;
use crate::time::Time;
use crate::wire::{
    Checksum, CommonHeader, DoesNotFit, PacketWriter, ReConfig, ReconfigParameter, ReconfigWriter,
};

use pending_response::PendingResponse;
use requests::Ours;
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

impl Association {
    /// Initialises the state from both initial TSNs, where the sequence numbers of requests begin
    /// (RFC 6525 4.1).
    pub(super) fn start_reconfig(&mut self, peer_initial: Tsn) {
        let agreed = self.handshake.has(Extension::StreamReconfiguration);
        self.reconfig = agreed.then(|| {
            Box::new(Reconfig {
                accepted: AcceptedRequests::ALL,
                next: self.handshake.local_initial_tsn.0,
                ours: None,
                blind: false,
                expected: peer_initial.0,
                in_progress: false,
                answers: VecDeque::new(),
                deferred: None,
                quiet: None,
                renumbered: false,
                pending_response: None,
            })
        });
    }

    /// Drops the state when the association ends or restarts, and releases the data that waited for
    /// a reset.
    pub(super) fn forget_reconfig(&mut self) {
        self.reconfig = None;
        self.update_largest_payload();
        self.sending.queue.release();
    }

    /// Processes a RE-CONFIG chunk of the peer (RFC 6525 5.2).
    pub(super) fn handle_reconfig(&mut self, now: Time, path: PathId, chunk: &ReConfig<'_>) {
        if self.reconfig.is_none() || !self.state.is_synchronised() {
            self.stats.dropped += 1;
            return;
        }
        let mark = self.outbox.len();
        self.handle_reconfig_parameters(now, path, chunk);
        // RFC 6525 5.2.1: "If multiple parameters have to be returned, they MUST be put into one
        // RE_CONFIG chunk."
        self.outbox.join_reconfig(mark, may_share_a_chunk);
    }

    fn handle_reconfig_parameters(&mut self, now: Time, path: PathId, chunk: &ReConfig<'_>) {
        // RFC 6525 3.1: one or two parameters.
        for parameter in chunk.parameters.iter().take(2) {
            match parameter {
                Ok(ReconfigParameter::Response { response, result, next_tsns }) => {
                    self.handle_reconfig_response(now, response, result, next_tsns);
                }
                Ok(request) if request.request().is_some() => {
                    self.answer_reconfig_request(now, path, &request);
                }
                // RFC 6525 4: processing stops at an unknown type.
                _ => {
                    self.stats.dropped += 1;
                    return;
                }
            }
            if self.is_closed() {
                return;
            }
        }
    }

    /// When the next timer of a request expires.
    pub(super) fn reconfig_timeout(&self) -> Option<Time> {
        let reconfig = self.reconfig.as_deref()?;
        let timers = [reconfig.ours.as_ref().and_then(|ours| ours.timer), reconfig.quiet];
        timers.into_iter().flatten().min()
    }

    /// The re-configuration timer has expired (RFC 6525 5.1.1): retransmits the chunk.
    pub(super) fn handle_reconfig_timeout(&mut self, now: Time) {
        let Some(reconfig) = &mut self.reconfig else { return };
        if reconfig.quiet.is_some_and(|t| t <= now) {
            // The peer has abandoned its request.
            reconfig.quiet = None;
            self.sending.queue.release();
        }
        let may_ask = self.state.may_send_data();
        let Some(reconfig) = &mut self.reconfig else { return };
        if !may_ask && reconfig.ours.take().is_some() {
            // The shutdown has begun, and nothing waits for the response.
            self.sending.queue.release();
        }
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some(ours) = reconfig.ours.as_mut().filter(|o| o.timer.is_some_and(|t| t <= now))
        else {
            return;
        };
        let (old, waits) = (ours.path, std::mem::take(&mut ours.told_to_wait));
        if !waits {
            self.paths[old].back_off(now);
            self.count_error(now, old, PathErrorKind::DataTimeout);
            if self.is_closed() {
                return;
            }
        }
        let path = if waits { old } else { self.alternate_for_control(old) };
        let rto = self.paths[path].rto();
        let mut again = now + rto;
        if waits {
            // After a request to reset the association, data is dropped for a round trip. A random
            // delay avoids keeping in step with the peer's T3-rtx: the data that the peer waits for
            // would never be acknowledged.
            again = again
                + Duration::from_nanos(
                    self.rng.below(u64::try_from(rto.as_nanos()).unwrap_or(u64::MAX - 1) + 1),
                );
        }
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some(ours) = &mut reconfig.ours else { return };
        (ours.path, ours.timer) = (path, Some(again));
        reconfig.blind = ours.resets_association();
        let body = ours.body.clone().unwrap_or_default();
        self.outbox.push(path, Control::Reconfig(body));
    }

    /// Whether the peer's data may have new numbers or old ones.
    pub(super) fn is_blind(&self) -> bool {
        self.reconfig.as_ref().is_some_and(|r| r.blind)
    }

    /// Whether all numbers of the peer may restart before its response arrives.
    pub(super) fn awaits_renumbering(&self) -> bool {
        let ours = self.reconfig.as_ref().and_then(|r| r.ours.as_ref());
        ours.is_some_and(Ours::resets_association)
    }

    /// Whether this side had other TSNs before a reset of the association.
    pub(super) fn is_renumbered(&self) -> bool {
        self.reconfig.as_ref().is_some_and(|r| r.renumbered)
    }
}
