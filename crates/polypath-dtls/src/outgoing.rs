//! Datagrams that wait for [`Layer::poll_transmit`](crate::Layer::poll_transmit).

use std::collections::VecDeque;

use polypath_proto::FourTuple;

/// Answers to unknown hosts are dropped while this many datagrams wait.
const ANSWERS: usize = 1024;
/// Number of further datagrams for each connection: a flight of the handshake and an alert. All
/// connections may time out or be closed by the same call.
const EACH: usize = 2;

/// The queue of a layer. A datagram that finds no room is lost, as it may be in the network: its
/// handshake retransmits it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    waiting: VecDeque<(FourTuple, Vec<u8>)>,
    /// Maximum number of datagrams.
    most: usize,
}

impl Outgoing {
    /// An empty queue of a layer with this maximum number of connections.
    pub(crate) const fn new(connections: usize) -> Self {
        let most = connections.saturating_mul(EACH).saturating_add(ANSWERS);
        Self { waiting: VecDeque::new(), most }
    }

    /// Whether an answer to an unknown host may be queued. The rest of the room is for connections,
    /// so that unknown hosts cannot take it.
    pub(crate) fn has_room_for_answer(&self) -> bool {
        self.waiting.len() < ANSWERS
    }

    /// Queues a datagram; returns false if there is no room.
    pub(crate) fn push(&mut self, way: FourTuple, datagram: Vec<u8>) -> bool {
        let room = self.waiting.len() < self.most;
        if room {
            self.waiting.push_back((way, datagram));
        }
        room
    }

    pub(crate) fn pop(&mut self) -> Option<(FourTuple, Vec<u8>)> {
        self.waiting.pop_front()
    }
}
