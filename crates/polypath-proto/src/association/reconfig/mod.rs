//! Stream reconfiguration (RFC 6525): resetting and adding streams by RE-CONFIG chunks.
//!
//! [`requests`] has what this side asks for and what comes of that, [`answers`] what the peer asks for, [`unheard`] an
//! answer that must not be overtaken.
//! There is nothing of it in an association whose sides have not both offered it.
//!
//! A stream's reset must not overtake its messages: what the application sends on such a stream meanwhile
//! waits (5.1.2 A1), and the request leaves when all that was sent before has its TSN. A reset of the
//! association waits until nothing is outstanding, so that it loses nothing; RFC 6525 5.1.4 and 5.2.4
//! would also allow to take what is outstanding for acknowledged.

mod answers;
mod requests;
mod unheard;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::Association;
use super::control::Control;
use crate::policy::failover::PathErrorKind;
use crate::send::Streams;
use crate::wire::{
    Checksum, CommonHeader, DoesNotFit, PacketWriter, ReConfig, ReconfigParameter, ReconfigWriter,
};
use crate::{Extension, PathId, Time, Tsn, VerificationTag};

use requests::Ours;
pub use requests::StreamReset;
use unheard::Unheard;

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
    /// All of them, as it is at the beginning.
    pub const ALL: Self = Self { reset_streams: true, reset_association: true, add_streams: true };
}

/// What both directions' requests have come to.
#[derive(Debug)]
pub(super) struct Reconfig {
    accepted: AcceptedRequests,
    /// The number of this side's next request.
    next: u32,
    ours: Option<Ours>,
    /// A reset of the association was asked for and may have been done: what the peer sends may have
    /// new numbers or old ones. It will send it again.
    blind: bool,
    /// The number of the peer's next request.
    expected: u32,
    /// The last answer to that request was "In progress".
    in_progress: bool,
    /// The last two answers with the requests' numbers, for when they got lost.
    answers: VecDeque<(u32, Bytes)>,
    deferred: Option<Deferred>,
    /// New data waits until then for the peer to repeat its request to reset the association.
    quiet: Option<Time>,
    /// A reset of the association has given this side other TSNs: SACKs for earlier ones may still
    /// arrive, after any number of further resets.
    renumbered: bool,
    /// A reset of the association has been answered, and the peer may not know it.
    unheard: Option<Unheard>,
}

/// The peer's streams are to be reset once everything up to a TSN has come (RFC 6525 5.2.2 E2).
#[derive(Debug)]
struct Deferred {
    request: u32,
    last_tsn: Tsn,
    streams: Streams,
    path: PathId,
}

/// The parameters that `write` writes.
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

/// RFC 6525 3.1: two responses may share a chunk, and a response with a request to reset outgoing streams
/// behind it.
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

    /// Keeps the answer to this request, in case the request comes again.
    fn keep_answer(&mut self, request: u32, body: &Bytes) {
        self.answers.truncate(1);
        self.answers.push_front((request, body.clone()));
    }
}

impl Association {
    /// Both sides' first TSNs are known. The requests are counted from there (RFC 6525 4.1).
    pub(super) fn start_reconfig(&mut self, peer_initial: Tsn) {
        let agreed = self.extensions.contains(Extension::StreamReconfiguration);
        self.reconfig = agreed.then(|| {
            Box::new(Reconfig {
                accepted: AcceptedRequests::ALL,
                next: self.local_initial_tsn.0,
                ours: None,
                blind: false,
                expected: peer_initial.0,
                in_progress: false,
                answers: VecDeque::new(),
                deferred: None,
                quiet: None,
                renumbered: false,
                unheard: None,
            })
        });
    }

    /// The association ends or begins anew: what waited for a reset waits no more.
    pub(super) fn forget_reconfig(&mut self) {
        self.reconfig = None;
        self.update_largest_payload();
        self.sender.queue.release();
    }

    /// A RE-CONFIG chunk of the peer (RFC 6525 5.2).
    pub(super) fn handle_reconfig(&mut self, now: Time, path: PathId, chunk: &ReConfig<'_>) {
        if self.reconfig.is_none() || !self.state.is_synchronised() {
            self.stats.dropped += 1;
            return;
        }
        let mark = self.control.len();
        self.handle_reconfig_parameters(now, path, chunk);
        // RFC 6525 5.2.1: "If multiple parameters have to be returned, they MUST be put into one RE_CONFIG
        // chunk."
        self.control.join_reconfig(mark, may_share_a_chunk);
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
                // RFC 6525 4: an unknown type asks to stop.
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

    /// The next instant at which a timer of a request expires.
    pub(super) fn reconfig_timeout(&self) -> Option<Time> {
        let reconfig = self.reconfig.as_deref()?;
        let timers = [reconfig.ours.as_ref().and_then(|ours| ours.timer), reconfig.quiet];
        timers.into_iter().flatten().min()
    }

    /// The re-configuration timer has expired (RFC 6525 5.1.1): the same chunk again.
    pub(super) fn handle_reconfig_timeout(&mut self, now: Time) {
        let Some(reconfig) = &mut self.reconfig else { return };
        if reconfig.quiet.is_some_and(|t| t <= now) {
            // The peer has given up its request.
            reconfig.quiet = None;
            self.sender.queue.release();
        }
        let may_ask = self.state.may_send_data();
        let Some(reconfig) = &mut self.reconfig else { return };
        if !may_ask && reconfig.ours.take().is_some() {
            // The shutdown has begun, and nothing waits for the answer.
            self.sender.queue.release();
        }
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some(ours) = reconfig.ours.as_mut().filter(|o| o.timer.is_some_and(|t| t <= now))
        else {
            return;
        };
        let (old, waits) = (ours.path, std::mem::take(&mut ours.told_to_wait));
        if !waits {
            self.paths[old.index()].back_off(now);
            self.count_error(now, old, PathErrorKind::DataTimeout);
            if self.is_closed() {
                return;
            }
        }
        let path = if waits { old } else { self.alternate_for_control(old) };
        let rto = self.paths[path.index()].rto();
        let mut again = now + rto;
        if waits {
            // After a request to reset the association nothing is taken for a round trip: in step with the
            // peer's T3-rtx, what the peer waits for would never be acknowledged.
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
        self.control.push(path, Control::Reconfig(body));
    }

    /// What the peer sends now may be numbered anew or not.
    pub(super) fn is_blind(&self) -> bool {
        self.reconfig.as_ref().is_some_and(|r| r.blind)
    }

    /// Every number of the peer may begin anew before its answer says so.
    pub(super) fn awaits_renumbering(&self) -> bool {
        let ours = self.reconfig.as_ref().and_then(|r| r.ours.as_ref());
        ours.is_some_and(Ours::resets_association)
    }

    /// This side had other TSNs before the association was reset.
    pub(super) fn is_renumbered(&self) -> bool {
        self.reconfig.as_ref().is_some_and(|r| r.renumbered)
    }
}
