//! The peer's requests (RFC 6525 5.2).

use bytes::Bytes;

use super::requests::{Ours, Request};
use super::{Deferred, Halves, Reconfig, parameters};
use crate::event::{Event, Reconfigured};
use crate::ids::{PathId, StreamId, Tsn};
use crate::outbox::Control;
use crate::streams::Streams;
use crate::time::Time;
use crate::wire::{ReconfigParameter, U16List, reconfig_result as result};

/// How far a reset of the association advances the peer's TSN (RFC 6525 5.2.4 G1).
const JUMP: u32 = 1 << 31;

/// Number of retransmission timeouts that the peer has for repeating its request.
const PATIENCE: u32 = 4;

/// The response to a request.
enum Answer {
    /// A result code.
    Result(u32),
    /// The reset was performed; the next TSNs of this side and of the peer.
    Renumbered(Tsn, Tsn),
    /// Requests of this side are the response.
    Request(Vec<Request>),
    /// A result code, followed by a request of this side.
    ResultAndRequest(u32, Request),
}

/// A Re-configuration Response Parameter (RFC 6525 4.4).
fn response(request: u32, result: u32, next_tsns: Option<(Tsn, Tsn)>) -> Option<Bytes> {
    let parameter = ReconfigParameter::Response { response: request, result, next_tsns };
    parameters(|w| w.parameter(&parameter)).ok()
}

impl Reconfig {
    /// Processes a request of the peer (RFC 6525 5.2.1).
    pub(super) fn answer(
        &mut self,
        h: &mut Halves<'_>,
        now: Time,
        path: PathId,
        parameter: &ReconfigParameter<'_>,
    ) {
        let Some(request) = parameter.request() else { return };
        // RFC 6525 5.1.7 D3, D4: the response to a request to reset the association has these
        // fields, whatever its result.
        let next_tsns = matches!(parameter, ReconfigParameter::AssociationReset { .. })
            .then(|| (h.sender.sending.flight.next_tsn(), h.receiving.tsns().cumulative().next()));
        match self.expected.wrapping_sub(request) {
            0 => {}
            1 | 2 => {
                // RFC 6525 5.2.1: repeat the response. A request of this side may be the response,
                // and may still be waiting.
                let waits = self.ours.as_ref().is_some_and(|o| o.will_answer(request));
                let known = self.answers.iter().find(|(number, _)| *number == request);
                if let Some((_, body)) = known {
                    h.sender.outbox.push(path, Control::Reconfig(body.clone()));
                } else if waits {
                    self.respond(h, path, request, result::IN_PROGRESS, next_tsns);
                }
                return;
            }
            // The second request of a chunk whose first one is in progress: the peer repeats both.
            u32::MAX if self.in_progress => {
                return self.respond(h, path, request, result::IN_PROGRESS, next_tsns);
            }
            _ => return self.respond(h, path, request, result::BAD_SEQUENCE_NUMBER, next_tsns),
        }
        let answer = match *parameter {
            ReconfigParameter::OutgoingReset { response, last_tsn, streams, .. } => {
                // E1: it is the response to a request of this side.
                self.end_request_like(h, |number, request| {
                    number == response && matches!(request, Request::ResetIncoming(_))
                });
                self.peer_resets_its_streams(h, path, request, last_tsn, streams)
            }
            ReconfigParameter::IncomingReset { streams, .. } => self.peer_resets_ours(h, streams),
            ReconfigParameter::AssociationReset { .. } => self.peer_resets_association(h, now),
            ReconfigParameter::AddOutgoing { streams, .. } => {
                self.end_request_like(h, |_, request| *request == Request::AddIncoming(streams));
                self.peer_adds_streams(h, streams)
            }
            ReconfigParameter::AddIncoming { streams, .. } => {
                self.peer_requests_streams(h, streams)
            }
            ReconfigParameter::Response { .. } | ReconfigParameter::Unknown { .. } => return,
        };
        self.note_result(request, matches!(answer, Answer::Result(result::IN_PROGRESS)));
        match answer {
            Answer::Result(code) => self.respond(h, path, request, code, next_tsns),
            Answer::Renumbered(ours, theirs) => {
                self.respond(h, path, request, result::PERFORMED, Some((ours, theirs)));
                self.repeat_until_acknowledged(ours, h.sender.sending, h.sender.paths);
            }
            Answer::Request(requests) => {
                self.request(&mut h.sender, now, requests, Some(request));
                if self.ours.as_ref().is_some_and(|o| o.will_answer(request)) {
                    self.respond(h, path, request, result::IN_PROGRESS, None);
                }
            }
            Answer::ResultAndRequest(code, asked) => {
                self.respond(h, path, request, code, None);
                self.request(&mut h.sender, now, vec![asked], None);
            }
        }
    }

    /// Answers the peer's request `number` with "Denied" from now on. The peer has refused the
    /// request of this side that was the answer, and would refuse it again.
    pub(super) fn deny_from_now_on(&mut self, number: u32) {
        let Some(body) = response(number, result::DENIED, None) else { return };
        if let Some((_, answer)) = self.answers.iter_mut().find(|(n, _)| *n == number) {
            *answer = body;
        }
    }

    /// Sends a result code, and stores it if it is final.
    fn respond(
        &mut self,
        h: &mut Halves<'_>,
        path: PathId,
        request: u32,
        code: u32,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(body) = response(request, code, next_tsns) else { return };
        if !matches!(code, result::IN_PROGRESS | result::BAD_SEQUENCE_NUMBER) {
            self.keep_answer(request, &body);
        }
        h.sender.outbox.push(path, Control::Reconfig(body));
    }

    /// The peer requests to reset its own streams (RFC 6525 5.2.2).
    fn peer_resets_its_streams(
        &mut self,
        h: &mut Halves<'_>,
        path: PathId,
        request: u32,
        last_tsn: Tsn,
        listed: U16List<'_>,
    ) -> Answer {
        if !self.accepted.reset_streams {
            return Answer::Result(result::DENIED);
        }
        if listed.iter().any(|s| s >= *h.inbound_streams) {
            return Answer::Result(result::WRONG_SSN);
        }
        let streams = Streams::listed(listed.iter());
        if last_tsn.is_after(h.receiving.tsns().cumulative()) {
            // E2.
            self.deferred = Some(Deferred { request, last_tsn, streams, path });
            return Answer::Result(result::IN_PROGRESS);
        }
        self.deferred = None;
        reset_incoming(h, &streams);
        Answer::Result(result::PERFORMED)
    }

    /// Data has arrived: performs a reset that waited for it (RFC 6525 5.2.2 E3 to E6).
    pub(in crate::association) fn perform_deferred_reset(&mut self, h: &mut Halves<'_>) {
        let cumulative = h.receiving.tsns().cumulative();
        if let Some(deferred) = self.deferred.take_if(|d| !d.last_tsn.is_after(cumulative)) {
            self.note_result(deferred.request, false);
            reset_incoming(h, &deferred.streams);
            self.respond(h, deferred.path, deferred.request, result::PERFORMED, None);
        }
    }

    /// Whether this is data of a stream that is being reset, to be dropped: the peer must not send
    /// it before it has the response (RFC 6525 5.2.2 E2).
    pub(in crate::association) fn is_deferred(&self, stream: StreamId, tsn: Tsn) -> bool {
        self.deferred
            .as_ref()
            .is_some_and(|d| tsn.is_after(d.last_tsn) && d.streams.contains(stream))
    }

    /// The peer requests to reset this side's streams (RFC 6525 5.2.3).
    fn peer_resets_ours(&self, h: &Halves<'_>, listed: U16List<'_>) -> Answer {
        let streams = Streams::listed(listed.iter());
        let in_flight = self.ours.as_ref().and_then(Ours::outgoing_in_flight);
        if !self.accepted.reset_streams {
            Answer::Result(result::DENIED)
        } else if listed.iter().any(|s| s >= *h.outbound_streams) {
            Answer::Result(result::WRONG_SSN)
        } else if in_flight.is_some_and(|ours| ours.includes(&streams, *h.outbound_streams)) {
            // "If the Outgoing SSN Reset Request Parameter that was just sent completely overlaps
            // the received Incoming SSN Reset Request Parameter"
            Answer::Result(result::NOTHING_TO_DO)
        } else if self.ours.as_ref().is_some_and(Ours::resets_outgoing_only) {
            // "Otherwise, process the Incoming SSN Reset Request Parameter normally", after the
            // response to this side's request: 5.1.1 allows one request at a time. The peer repeats
            // its request.
            Answer::Result(result::IN_PROGRESS)
        } else if self.ours.is_some() || self.quiet.is_some() {
            Answer::Result(result::ALREADY_IN_PROGRESS)
        } else {
            Answer::Request(vec![Request::ResetOutgoing(streams)])
        }
    }

    /// The peer requests to reset the association (RFC 6525 5.2.4). This side's outstanding data is
    /// acknowledged first: new data waits for that, and the peer repeats its request.
    fn peer_resets_association(&mut self, h: &mut Halves<'_>, now: Time) -> Answer {
        let rto = h.sender.paths[h.sender.paths.for_control()].rto();
        if !self.accepted.reset_association {
            return Answer::Result(result::DENIED);
        }
        if self.ours.is_some() {
            return Answer::Result(result::ALREADY_IN_PROGRESS);
        }
        let sender = &mut *h.sender.sending;
        if !(sender.queue.is_empty() && sender.flight.is_empty()) {
            self.quiet = Some(now + rto * PATIENCE);
            if !sender.queue.is_holding() {
                sender.queue.hold(Streams::All);
            }
            return Answer::Result(result::IN_PROGRESS);
        }
        self.quiet = None;
        let ours = sender.flight.next_tsn();
        let theirs = h.receiving.tsns().cumulative().next().plus(JUMP);
        self.renumber(h, ours, theirs);
        h.sender.sending.queue.release();
        let (outcome, tsns) = (Reconfigured::Performed, Some((ours, theirs)));
        h.sender.events.push(Event::AssociationReset { outcome, tsns });
        Answer::Renumbered(ours, theirs)
    }

    /// The peer adds streams to send on (RFC 6525 5.2.5).
    fn peer_adds_streams(&self, h: &mut Halves<'_>, added: u16) -> Answer {
        let accepted = self.accepted.add_streams;
        let streams = h.inbound_streams.checked_add(added);
        match streams.filter(|s| accepted && added > 0 && *s <= h.sender.config.inbound_streams()) {
            Some(streams) => {
                *h.inbound_streams = streams;
                h.receiving.set_streams(streams);
                let outcome = Reconfigured::Performed;
                h.sender.events.push(Event::StreamsAdded { incoming: true, streams, outcome });
                Answer::Result(result::PERFORMED)
            }
            None => Answer::Result(result::DENIED),
        }
    }

    /// The peer requests more streams of this side (RFC 6525 5.2.6).
    fn peer_requests_streams(&self, h: &Halves<'_>, added: u16) -> Answer {
        let possible = added > 0 && h.outbound_streams.checked_add(added).is_some();
        if !self.accepted.add_streams || !possible {
            Answer::Result(result::DENIED)
        } else if self.ours.is_some() || self.quiet.is_some() {
            Answer::Result(result::ALREADY_IN_PROGRESS)
        } else {
            Answer::ResultAndRequest(result::PERFORMED, Request::AddOutgoing(added))
        }
    }
}

/// Resets the peer's streams (RFC 6525 5.2.2 E3).
fn reset_incoming(h: &mut Halves<'_>, streams: &Streams) {
    h.receiving.reset_streams(streams);
    let (streams, outcome) = (streams.list(), Reconfigured::Performed);
    h.sender.events.push(Event::StreamsReset { incoming: true, streams, outcome });
}
