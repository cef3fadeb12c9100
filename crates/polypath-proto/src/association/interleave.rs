//! User message interleaving: I-DATA in place of DATA, if both sides offered it (RFC 8260 2.2); and
//! the application's choice of the stream to send from next (RFC 8260 3, 4.3).

use super::Association;
use super::data::DataSeen;
use crate::error::SendError;
use crate::extension::Extension;
use crate::ids::{PathId, StreamId};
use crate::policy::{Policy, StreamScheduler};
use crate::wire::{DATA_HEADER_LEN, I_DATA_HEADER_LEN, IData};

impl Association {
    /// Length of the header of a chunk of user data.
    pub(super) const fn data_header(&self) -> usize {
        let interleaves = self.handshake.has(Extension::Interleaving);
        if interleaves { I_DATA_HEADER_LEN } else { DATA_HEADER_LEN }
    }

    /// RFC 8260 2.2.1: "I-DATA chunks MUST be used for all user messages and DATA-chunk MUST NOT be
    /// used", or the reverse without the extension. True if the peer violates that, which ends the
    /// association.
    pub(super) fn is_wrong_kind(&mut self, interleaved: bool) -> bool {
        let agreed = self.handshake.has(Extension::Interleaving);
        if agreed == interleaved || !self.state.may_receive_data() {
            return false;
        }
        self.violation(if agreed {
            "DATA where messages are interleaved"
        } else {
            "I-DATA where messages are not interleaved"
        });
        true
    }

    pub(super) fn handle_i_data(&mut self, path: PathId, data: &IData<'_>, seen: &mut DataSeen) {
        let head = data.into();
        if !self.is_wrong_kind(true) && self.note_data(path, head, seen) {
            let outcome = self.receiving.handle_i_data(data);
            self.note_outcome(path, head, outcome, seen);
        }
    }

    /// Sets the scheduler that chooses the stream to send from next (SCTP_STREAM_SCHEDULER, RFC
    /// 8260 4.3.2).
    pub fn set_stream_scheduler(&mut self, policy: impl Into<Policy<dyn StreamScheduler>>) {
        self.config.stream_scheduler = policy.into();
        self.reschedule();
    }

    /// Makes the scheduler anew, for the current values of the streams.
    fn reschedule(&mut self) {
        let scheduler = self.config.stream_scheduler().make(&self.config.setup());
        self.sending.queue.schedule(scheduler);
    }

    /// Sets a stream's value for the scheduler: its priority, where smaller numbers are served
    /// first, or its weight (SCTP_STREAM_SCHEDULER_VALUE, RFC 8260 4.3.3). It is 0 at the start.
    ///
    /// # Errors
    ///
    /// There is no such stream.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), SendError> {
        if stream.0 >= self.handshake.outbound_streams {
            return Err(SendError::NoSuchStream {
                stream,
                streams: self.handshake.outbound_streams,
            });
        }
        self.sending.queue.set_value(stream, value);
        self.reschedule();
        Ok(())
    }

    /// A stream's value for the scheduler; see [`set_stream_value`](Self::set_stream_value).
    pub fn stream_value(&self, stream: StreamId) -> u16 {
        self.sending.queue.value(stream)
    }
}
