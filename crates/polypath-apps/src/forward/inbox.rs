//! What the peer has sent over a connection and the local program has not taken.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::forward::message::Failure;

/// Data is copied into larger pieces up to this many bytes: a peer that sends single bytes would
/// otherwise occupy a multiple of its window.
const PIECE: usize = 4096;

/// A report about a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Opened,
    Failed(Failure),
    Data(Bytes),
    End,
    Reset(Failure),
}

/// A queue with one reader. Its memory is in proportion to its bytes, however small the messages
/// are that bring them.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    /// Small pieces of data behind the last event.
    tail: BytesMut,
    is_closed: bool,
}

impl State {
    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.events.push_back(Event::Data(self.tail.split().freeze()));
        }
    }
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, event: Event) {
        let mut state = self.state();
        match event {
            Event::Data(bytes) if bytes.len() < PIECE => {
                if state.tail.len() + bytes.len() > PIECE {
                    state.flush();
                }
                state.tail.extend_from_slice(&bytes);
            }
            event => {
                state.flush();
                state.events.push_back(event);
            }
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// No more events follow.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.arrived.notify_one();
    }

    /// The next event; `None` behind the last one. Cancellation-safe.
    pub(crate) async fn next(&self) -> Option<Event> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut state = self.state();
                if state.events.is_empty() {
                    state.flush();
                }
                if let Some(event) = state.events.pop_front() {
                    return Some(event);
                }
                if state.is_closed {
                    return None;
                }
            }
            arrived.await;
        }
    }

    /// Bytes of memory of the queue.
    #[cfg(test)]
    fn memory(&self) -> usize {
        let state = self.state();
        let data = state.events.iter().map(|event| match event {
            Event::Data(bytes) => bytes.len(),
            _ => 0,
        });
        data.sum::<usize>() + state.tail.capacity() + state.events.capacity() * size_of::<Event>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[tokio::test]
    async fn single_bytes_occupy_hardly_more_than_large_pieces() {
        let inbox = Inbox::default();
        let datagram = Bytes::from(vec![7; 1400]);
        for _ in 0..1_000_000 {
            inbox.push(Event::Data(datagram.slice(..1)));
        }
        assert!(inbox.memory() < 1_100_000, "{}", inbox.memory());
        // The datagram is free as soon as its last byte is in the queue.
        assert!(datagram.try_into_mut().is_ok());
        let mut count = 0;
        inbox.close();
        while let Some(Event::Data(bytes)) = inbox.next().await {
            count += bytes.len();
        }
        assert_eq!(count, 1_000_000);
    }

    proptest! {
        /// Every byte and every event arrives in order, however it is cut.
        #[test]
        fn the_order_is_kept(pieces in prop::collection::vec(0..9000usize, 0..40)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let inbox = Inbox::default();
            let (mut sent, mut next) = (Vec::new(), 0u8);
            for &size in &pieces {
                if size == 0 {
                    inbox.push(Event::Opened);
                    sent.push(None);
                    continue;
                }
                let piece: Vec<u8> = (0..size).map(|n| next.wrapping_add(n as u8)).collect();
                next = next.wrapping_add(size as u8);
                sent.extend(piece.iter().copied().map(Some));
                inbox.push(Event::Data(piece.into()));
            }
            inbox.close();
            let mut found = Vec::new();
            while let Some(event) = runtime.block_on(inbox.next()) {
                match event {
                    Event::Data(bytes) => found.extend(bytes.iter().copied().map(Some)),
                    _ => found.push(None),
                }
            }
            prop_assert!(found == sent);
        }
    }
}
