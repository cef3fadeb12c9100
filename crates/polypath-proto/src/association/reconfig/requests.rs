//! This side's requests (RFC 6525 5.1), and the peer's responses (5.2.7).

use bytes::Bytes;

use super::{Halves, Reconfig, parameters};
use crate::association::Sender;
use crate::association::ecn::Marks;
use crate::event::{Event, Reconfigured};
use crate::ids::{PathId, Tsn};
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
pub(in crate::association) enum Request {
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
    pub(super) deferred_by_peer: bool,
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

impl Reconfig {
    /// Sends requests as soon as possible. `answers` is the peer's request that causes them.
    pub(in crate::association) fn request(
        &mut self,
        s: &mut Sender<'_>,
        now: Time,
        requests: Vec<Request>,
        answers: Option<u32>,
    ) {
        let path = s.paths.for_control();
        for request in &requests {
            match request {
                Request::ResetOutgoing(streams) => s.sending.queue.hold(streams.clone()),
                Request::ResetAssociation => s.sending.queue.hold(Streams::All),
                _ => {}
            }
        }
        let first = self.next;
        self.next = first.wrapping_add(requests.len() as u32);
        let requests = (0..).map(|i| first.wrapping_add(i)).zip(requests).collect();
        self.ours = Some(Ours {
            requests,
            answers,
            body: None,
            path,
            timer: None,
            deferred_by_peer: false,
        });
        self.advance(s, now);
    }

    /// Sends the waiting requests if they are ready.
    #[inline(never)]
    pub(in crate::association) fn advance(&mut self, s: &mut Sender<'_>, now: Time) {
        let Some(ours) = self.ours.as_mut().filter(|o| o.body.is_none()) else { return };
        let sender = &mut *s.sending;
        let ready = ours.requests.iter().all(|(_, request)| match request {
            Request::ResetOutgoing(streams) => !sender.queue.has_any_of(streams),
            // RFC 6525 5.1.4: nothing is outstanding.
            Request::ResetAssociation => sender.queue.is_empty() && sender.flight.is_empty(),
            _ => true,
        });
        if !ready || !s.phase.may_send_data {
            return;
        }
        // RFC 6525 5.1.2 A4.
        let response = ours.answers.unwrap_or_else(|| self.expected.wrapping_sub(1));
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
        ours.timer = Some(now + s.paths[ours.path].rto());
        let (path, answers) = (ours.path, ours.answers);
        self.blind = ours.resets_association();
        if let Some(request) = answers {
            self.keep_answer(request, &body);
        }
        s.outbox.push(path, Control::Reconfig(body));
    }

    /// Processes a response of the peer (RFC 6525 5.2.7).
    pub(super) fn handle_response(
        &mut self,
        h: &mut Halves<'_>,
        now: Time,
        response: u32,
        result: u32,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(ours) = self.ours.as_mut().filter(|o| o.body.is_some()) else { return };
        let Some(at) = ours.requests.iter().position(|(number, _)| *number == response) else {
            // The response is repeated, or from before a restart.
            h.sender.stats.dropped += 1;
            return;
        };
        let path = ours.path;
        if result == reconfig_result::IN_PROGRESS {
            ours.deferred_by_peer = true;
            self.blind = false;
            return;
        }
        h.sender.paths.answered(now, path, h.sender.events);
        let outcome = match result {
            reconfig_result::NOTHING_TO_DO | reconfig_result::PERFORMED => Reconfigured::Performed,
            reconfig_result::DENIED => Reconfigured::Denied,
            _ => Reconfigured::Failed,
        };
        self.end_request(h, at, outcome, next_tsns);
    }

    /// The peer has answered by a request of its own: ends the request for which `what` is true.
    pub(super) fn end_request_like(
        &mut self,
        h: &mut Halves<'_>,
        what: impl Fn(u32, &Request) -> bool,
    ) {
        let at =
            self.ours.as_ref().filter(|o| o.body.is_some()).and_then(|o| {
                o.requests.iter().position(|(number, request)| what(*number, request))
            });
        if let Some(at) = at {
            self.end_request(h, at, Reconfigured::Performed, None);
        }
    }

    fn end_request(
        &mut self,
        h: &mut Halves<'_>,
        at: usize,
        outcome: Reconfigured,
        next_tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(ours) = &mut self.ours else { return };
        let (_, request) = ours.requests.remove(at);
        let answers = ours.answers;
        if ours.requests.is_empty() {
            self.ours = None;
            self.blind = false;
        }
        let done = outcome == Reconfigured::Performed;
        match request {
            Request::ResetOutgoing(streams) => {
                if done {
                    h.sender.sending.queue.reset_numbers(&streams);
                } else if let Some(number) = answers {
                    self.deny_from_now_on(number);
                }
                h.sender.sending.queue.release();
                let streams = streams.list();
                h.sender.events.push(Event::StreamsReset { incoming: false, streams, outcome });
            }
            // If it was performed, the peer's own request reports it.
            Request::ResetIncoming(streams) if !done => {
                let streams = streams.list();
                h.sender.events.push(Event::StreamsReset { incoming: true, streams, outcome });
            }
            Request::ResetAssociation => {
                let (outcome, tsns) = match next_tsns {
                    Some((theirs, ours)) if done => {
                        self.renumber(h, ours, theirs);
                        (outcome, Some((ours, theirs)))
                    }
                    None if done => (Reconfigured::Failed, None),
                    _ => (outcome, None),
                };
                h.sender.sending.queue.release();
                h.sender.events.push(Event::AssociationReset { outcome, tsns });
            }
            Request::AddOutgoing(added) => {
                if done {
                    *h.outbound_streams = h.outbound_streams.saturating_add(added);
                }
                let streams = *h.outbound_streams;
                h.sender.events.push(Event::StreamsAdded { incoming: false, streams, outcome });
            }
            Request::AddIncoming(_) if !done => {
                let streams = *h.inbound_streams;
                h.sender.events.push(Event::StreamsAdded { incoming: true, streams, outcome });
            }
            Request::ResetIncoming(_) | Request::AddIncoming(_) => {}
        }
    }

    /// Renumbers both directions: the next TSN of this side and that of the peer, and all stream
    /// sequence numbers (RFC 6525 5.2.4, 5.2.7). Nothing is outstanding.
    pub(super) fn renumber(&mut self, h: &mut Halves<'_>, next: Tsn, peer_next: Tsn) {
        let s = &mut h.sender;
        let last = s.sending.flight.next_tsn().prev();
        let renumbered = last != next.prev();
        if renumbered {
            s.sending.copies.clear();
            s.sending.flight.restart(next);
            s.paths.iter_mut().for_each(crate::path::Path::clear_highest_sent);
            s.sending.cwnd_update = s.config.cwnd_update().make(&s.config.setup());
            s.sending.loss = s.config.loss().make(&s.config.setup());
        }
        // An unanswered FORWARD TSN is obsolete.
        s.sending.forward = None;
        s.sending.probe = WindowProbe::Idle;
        s.sending.queue.reset_numbers(&Streams::All);
        // Data that has overtaken the response over another path has been acknowledged.
        let taken = h.receiving.tsns().cumulative().next();
        let peer_next = if taken.is_after(peer_next) { taken } else { peer_next };
        // RFC 6525 5.2.4 G4: as if a FORWARD TSN had listed all streams.
        h.receiving.skip_all();
        if h.receiving.has_news() {
            s.events.push_readable();
        }
        let streams = *h.inbound_streams;
        h.receiving.restart(peer_next, streams, h.sender.agreed);
        // A peer that has not received the new numbers yet would reject them in a SACK.
        h.receiving.ack.clear();
        *h.marks = Marks::default();
        h.sender.paths.iter_mut().for_each(|p| p.marks = crate::path::Marks::default());
        self.renumbered |= renumbered;
        self.deferred = None;
    }
}
