//! This side's requests (RFC 6525 5.1), and the peer's responses (5.2.7).

use bytes::Bytes;

use super::{AcceptedRequests, parameters};
use crate::association::Association;
use crate::association::state::State;
use crate::error::ReconfigError;
use crate::event::{Event, Reconfigured};
use crate::ids::{PathId, StreamId, Tsn};
use crate::outbox::Control;
use crate::send::WindowProbe;
use crate::streams::Streams;
use crate::time::Time;
use crate::wire::{ReconfigParameter, U16List, reconfig_result};

/// Whose streams are reset (RFC 6525 6.3.2, `SCTP_RESET_STREAMS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamReset {
    /// This side's (`SCTP_STREAM_RESET_OUTGOING`).
    Outgoing,
    /// The peer's (`SCTP_STREAM_RESET_INCOMING`).
    Incoming,
    /// Both.
    Both,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    ResetOutgoing(Streams),
    ResetIncoming(Streams),
    ResetAssociation,
    AddOutgoing(u16),
    AddIncoming(u16),
}

/// The requests of one chunk; no second one is sent meanwhile (RFC 6525 5.1.1).
#[derive(Debug)]
pub(super) struct Ours {
    /// The unanswered requests, with their sequence numbers.
    requests: Vec<(u32, Request)>,
    /// The peer's request that they answer.
    answers: Option<u32>,
    /// The parameters of the chunk that was sent, which retransmissions repeat unchanged.
    pub(super) body: Option<Bytes>,
    pub(super) path: PathId,
    /// Runs while a response is outstanding.
    pub(super) timer: Option<Time>,
    /// The peer is processing the request: repeating it does not count as an error.
    pub(super) told_to_wait: bool,
}

impl Ours {
    pub(super) fn resets_association(&self) -> bool {
        self.requests.iter().any(|(_, r)| *r == Request::ResetAssociation)
    }

    /// The streams in an unanswered request to reset this side's streams, if it has been sent.
    pub(super) fn outgoing_in_flight(&self) -> Option<&Streams> {
        let mut sent = self.requests.iter().filter(|_| self.body.is_some());
        sent.find_map(|(_, r)| if let Request::ResetOutgoing(s) = r { Some(s) } else { None })
    }

    /// Whether all unanswered requests reset this side's streams.
    pub(super) fn resets_outgoing_only(&self) -> bool {
        self.requests.iter().all(|(_, r)| matches!(r, Request::ResetOutgoing(_)))
    }

    /// Whether this chunk answers the peer's `request` and has not been sent yet.
    pub(super) fn will_answer(&self, request: u32) -> bool {
        self.answers == Some(request) && self.body.is_none()
    }
}

fn numbers(streams: &Streams) -> Vec<u8> {
    streams.list().iter().flat_map(|s| s.0.to_be_bytes()).collect()
}

/// The list that `numbers` has encoded as `bytes`.
fn listed(bytes: &[u8]) -> U16List<'_> {
    U16List::from_be_bytes(bytes).unwrap_or_default()
}

impl Association {
    /// Restarts the sequence numbers of streams, of all if none is listed (RFC 6525 6.3.2,
    /// `SCTP_RESET_STREAMS`). Messages sent on them meanwhile wait. [`Event::StreamsReset`] reports
    /// the result.
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
        let room = self.paths.iter().map(crate::path::Path::max_packet).min().unwrap_or(0);
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
        self.begin_reconfig(now, requests, None);
        Ok(())
    }

    /// Restarts all sequence numbers in both directions, TSNs included, once everything sent has
    /// been acknowledged (RFC 6525 6.3.3, `SCTP_RESET_ASSOC`). Messages sent meanwhile wait.
    /// [`Event::AssociationReset`] reports the result.
    ///
    /// # Errors
    ///
    /// See [`ReconfigError`]; no request is sent then.
    pub fn reset_association(&mut self, now: Time) -> Result<(), ReconfigError> {
        self.may_reconfigure()?;
        self.begin_reconfig(now, vec![Request::ResetAssociation], None);
        Ok(())
    }

    /// Adds these numbers of streams in each direction (RFC 6525 6.3.4, `SCTP_ADD_STREAMS`).
    /// [`Event::StreamsAdded`] reports the result.
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
        self.begin_reconfig(now, requests, None);
        Ok(())
    }

    /// Sets which of the peer's requests are granted from now on (RFC 6525 6.3.1,
    /// `SCTP_ENABLE_STREAM_RESET`).
    ///
    /// # Errors
    ///
    /// The two sides have not agreed on stream reconfiguration, or not yet.
    pub fn accept_requests(&mut self, accepted: AcceptedRequests) -> Result<(), ReconfigError> {
        let reconfig = self.reconfig.as_mut().ok_or(ReconfigError::NotAgreed)?;
        reconfig.accepted = accepted;
        Ok(())
    }

    fn may_reconfigure(&self) -> Result<(), ReconfigError> {
        if !matches!(self.state, State::Established) {
            return Err(ReconfigError::NotEstablished);
        }
        let reconfig = self.reconfig.as_ref().ok_or(ReconfigError::NotAgreed)?;
        if reconfig.ours.is_some() || reconfig.quiet.is_some() {
            return Err(ReconfigError::InProgress);
        }
        Ok(())
    }

    /// Sends requests as soon as possible. `answers` is the peer's request that causes them.
    pub(super) fn begin_reconfig(
        &mut self,
        now: Time,
        requests: Vec<Request>,
        answers: Option<u32>,
    ) {
        let path = self.paths.for_control();
        let Some(reconfig) = &mut self.reconfig else { return };
        for request in &requests {
            match request {
                Request::ResetOutgoing(streams) => self.sending.queue.hold(streams.clone()),
                Request::ResetAssociation => self.sending.queue.hold(Streams::All),
                _ => {}
            }
        }
        let first = reconfig.next;
        reconfig.next = first.wrapping_add(requests.len() as u32);
        let requests = (0..).map(|i| first.wrapping_add(i)).zip(requests).collect();
        reconfig.ours =
            Some(Ours { requests, answers, body: None, path, timer: None, told_to_wait: false });
        self.advance_reconfig(now);
    }

    /// Sends the waiting requests if they are ready.
    pub(in crate::association) fn advance_reconfig(&mut self, now: Time) {
        if self.reconfig.is_some() {
            self.advance_waiting_request(now);
        }
    }

    #[inline(never)]
    fn advance_waiting_request(&mut self, now: Time) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some(ours) = reconfig.ours.as_mut().filter(|o| o.body.is_none()) else { return };
        let sender = &mut self.sending;
        let ready = ours.requests.iter().all(|(_, request)| match request {
            Request::ResetOutgoing(streams) => !sender.queue.has_any_of(streams),
            // RFC 6525 5.1.4: nothing is outstanding.
            Request::ResetAssociation => sender.queue.is_empty() && sender.flight.is_empty(),
            _ => true,
        });
        if !ready || !self.state.may_send_data() {
            return;
        }
        // RFC 6525 5.1.2 A4.
        let response = ours.answers.unwrap_or_else(|| reconfig.expected.wrapping_sub(1));
        let last_tsn = sender.flight.next_tsn().prev();
        if ours.requests.iter().any(|(_, request)| matches!(request, Request::ResetOutgoing(_))) {
            sender.flight.note_reset();
        }
        let written = parameters(|w| {
            ours.requests.iter().try_for_each(|(number, request)| {
                let request_number = *number;
                match request {
                    Request::ResetOutgoing(streams) => {
                        w.parameter(&ReconfigParameter::OutgoingReset {
                            request: request_number,
                            response,
                            last_tsn,
                            streams: listed(&numbers(streams)),
                        })
                    }
                    Request::ResetIncoming(streams) => {
                        w.parameter(&ReconfigParameter::IncomingReset {
                            request: request_number,
                            streams: listed(&numbers(streams)),
                        })
                    }
                    Request::ResetAssociation => {
                        w.parameter(&ReconfigParameter::AssociationReset {
                            request: request_number,
                        })
                    }
                    Request::AddOutgoing(streams) => w.parameter(&ReconfigParameter::AddOutgoing {
                        request: request_number,
                        streams: *streams,
                    }),
                    Request::AddIncoming(streams) => w.parameter(&ReconfigParameter::AddIncoming {
                        request: request_number,
                        streams: *streams,
                    }),
                }
            })
        });
        debug_assert!(written.is_ok(), "the list was bounded");
        let body = written.unwrap_or_default();
        ours.body = Some(body.clone());
        ours.timer = Some(now + self.paths[ours.path].rto());
        let (path, answers) = (ours.path, ours.answers);
        reconfig.blind = ours.resets_association();
        if let Some(request) = answers {
            reconfig.keep_answer(request, &body);
        }
        self.outbox.push(path, Control::Reconfig(body));
    }

    /// Processes a response of the peer (RFC 6525 5.2.7).
    pub(super) fn handle_reconfig_response(
        &mut self,
        now: Time,
        response: u32,
        result: u32,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some(ours) = reconfig.ours.as_mut().filter(|o| o.body.is_some()) else { return };
        let Some(at) = ours.requests.iter().position(|(number, _)| *number == response) else {
            // The response is repeated, or from before a restart.
            self.stats.dropped += 1;
            return;
        };
        let path = ours.path;
        if result == reconfig_result::IN_PROGRESS {
            ours.told_to_wait = true;
            reconfig.blind = false;
            return;
        }
        self.paths.answered(now, path, &mut self.events);
        let outcome = match result {
            reconfig_result::NOTHING_TO_DO | reconfig_result::PERFORMED => Reconfigured::Performed,
            reconfig_result::DENIED => Reconfigured::Denied,
            _ => Reconfigured::Failed,
        };
        self.end_request(now, at, outcome, next_tsns);
    }

    /// The peer has answered by a request of its own: ends the request for which `what` is true.
    pub(super) fn end_request_like(&mut self, now: Time, what: impl Fn(u32, &Request) -> bool) {
        let ours = self.reconfig.as_ref().and_then(|r| r.ours.as_ref());
        let at = ours
            .filter(|o| o.body.is_some())
            .and_then(|o| o.requests.iter().position(|(number, request)| what(*number, request)));
        if let Some(at) = at {
            self.end_request(now, at, Reconfigured::Performed, None);
        }
    }

    fn end_request(
        &mut self,
        now: Time,
        at: usize,
        outcome: Reconfigured,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some(ours) = &mut reconfig.ours else { return };
        let (_, request) = ours.requests.remove(at);
        let answers = ours.answers;
        if ours.requests.is_empty() {
            reconfig.ours = None;
            reconfig.blind = false;
        }
        let done = outcome == Reconfigured::Performed;
        match request {
            Request::ResetOutgoing(streams) => {
                if done {
                    self.sending.queue.reset_numbers(&streams);
                } else if let Some(number) = answers {
                    self.deny_from_now_on(number);
                }
                self.sending.queue.release();
                let streams = streams.list();
                self.events.push(Event::StreamsReset { incoming: false, streams, outcome });
            }
            // If it was performed, the peer's own request reports it.
            Request::ResetIncoming(streams) if !done => {
                let streams = streams.list();
                self.events.push(Event::StreamsReset { incoming: true, streams, outcome });
            }
            Request::ResetAssociation => {
                let outcome = match next_tsns {
                    Some((theirs, ours)) if done => {
                        self.renumber(ours, theirs);
                        outcome
                    }
                    None if done => Reconfigured::Failed,
                    _ => outcome,
                };
                self.sending.queue.release();
                self.events.push(Event::AssociationReset { outcome });
            }
            Request::AddOutgoing(added) => {
                if done {
                    self.handshake.outbound_streams =
                        self.handshake.outbound_streams.saturating_add(added);
                }
                let streams = self.handshake.outbound_streams;
                self.events.push(Event::StreamsAdded { incoming: false, streams, outcome });
            }
            Request::AddIncoming(_) if !done => {
                let streams = self.handshake.inbound_streams;
                self.events.push(Event::StreamsAdded { incoming: true, streams, outcome });
            }
            Request::ResetIncoming(_) | Request::AddIncoming(_) => {}
        }
        self.advance_shutdown(now);
    }

    /// Renumbers both directions: the next TSN of this side and that of the peer, and all stream
    /// sequence numbers (RFC 6525 5.2.4, 5.2.7). Nothing is outstanding.
    pub(super) fn renumber(&mut self, next: Tsn, peer_next: Tsn) {
        let last = self.sending.flight.next_tsn().prev();
        let renumbered = last != next.prev();
        if renumbered {
            self.sending.flight.restart(next);
            self.paths.iter_mut().for_each(crate::path::Path::forget_highest_sent);
            self.sending.cwnd_update = self.config.cwnd_update().make(&self.config.setup());
            self.sending.loss = self.config.loss().make(&self.config.setup());
        }
        // An unanswered FORWARD TSN is obsolete.
        self.sending.forward = None;
        self.sending.probe = WindowProbe::Idle;
        self.sending.queue.reset_numbers(&Streams::All);
        // Data that has overtaken the response over another path has been acknowledged.
        let taken = self.receiving.tsns().cumulative().next();
        let peer_next = if taken.is_after(peer_next) { taken } else { peer_next };
        // RFC 6525 5.2.4 G4: as if a FORWARD TSN had listed all streams.
        self.receiving.skip_all();
        self.note_readable();
        let streams = self.handshake.inbound_streams;
        self.receiving.restart(peer_next, streams, self.handshake.extensions);
        // A peer that has not received the new numbers yet would reject them in a SACK.
        self.receiving.ack.clear();
        self.marks = Default::default();
        if let Some(reconfig) = &mut self.reconfig {
            reconfig.renumbered |= renumbered;
            reconfig.deferred = None;
        }
    }
}
