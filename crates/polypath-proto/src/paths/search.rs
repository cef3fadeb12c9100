//! When HEARTBEATs are due while no path answers.

use crate::time::Time;

/// Packets with DATA after which silence deserves a HEARTBEAT. They bound its cost.
const STREAM: u32 = 16;

/// Whether the paths are probed more often than once for each HB.interval, because none answers.
#[derive(Debug, Default)]
pub(crate) struct Search {
    state: State,
    /// When a packet of the peer last arrived.
    last_packet: Time,
    /// Packets with DATA since the last search.
    arrived: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Off,
    /// The peer has sent a stream of data: its silence is judged then.
    Listening(Time),
    /// No path has answered since `since`, and HEARTBEATs are due at `due`.
    Searching { since: Time, due: Time },
}

impl Search {
    /// When [`due_since`](Self::due_since) is to be asked.
    pub(crate) const fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Off => None,
            State::Listening(at) | State::Searching { due: at, .. } => Some(at),
        }
    }

    /// A packet of the peer has arrived, with DATA or not.
    pub(crate) fn packet_arrived(&mut self, now: Time, data: bool) {
        self.last_packet = now;
        self.arrived = self.arrived.saturating_add(data.into());
    }

    /// Whether enough DATA has arrived to judge the peer's silence, and it is not judged yet.
    pub(crate) const fn should_listen(&self) -> bool {
        self.arrived >= STREAM && matches!(self.state, State::Off)
    }

    /// Judges the silence of the peer at `at`.
    pub(crate) const fn listen(&mut self, at: Time) {
        self.state = State::Listening(at);
    }

    /// Whether HEARTBEATs are sent because no path answers.
    pub(crate) const fn is_searching(&self) -> bool {
        matches!(self.state, State::Searching { .. })
    }

    /// Searches since `since`; the next HEARTBEATs are due at `due`.
    pub(crate) const fn search(&mut self, since: Time, due: Time) {
        self.state = State::Searching { since, due };
        self.arrived = 0;
    }

    /// The deadline has passed. Returns since when no path has answered, if HEARTBEATs are due.
    pub(crate) fn due_since(&mut self, now: Time, patience: std::time::Duration) -> Option<Time> {
        match self.state {
            State::Searching { since, due } => (due <= now).then_some(since),
            State::Listening(at) if at <= now => {
                let silent_at = self.last_packet + patience;
                if silent_at > now {
                    self.state = State::Listening(silent_at);
                    return None;
                }
                Some(self.last_packet)
            }
            State::Listening(_) | State::Off => None,
        }
    }

    /// A path has answered: the search is over.
    pub(crate) const fn end(&mut self) {
        if self.is_searching() {
            self.state = State::Off;
        }
    }

    /// Stops the timers.
    pub(crate) const fn stop(&mut self) {
        self.state = State::Off;
    }
}
