//! User message interleaving: I-DATA in place of DATA, if both sides offered it (RFC 8260 2.2); and the
//! application's say in which stream's message leaves next (RFC 8260 3, 4.3).

use super::Association;
use super::data::DataSeen;
use crate::error::SendError;
use crate::policy::{Answer, StreamScheduler};
use crate::receive::Receiver;
use crate::wire::{
    COMMON_HEADER_LEN, CommonHeader, DATA_HEADER_LEN, I_DATA_HEADER_LEN, IData, PacketWriter,
};
use crate::{Extension, Extensions, PathId, StreamId, VerificationTag};

impl Association {
    /// Bytes of a chunk of user data before the data.
    pub(super) const fn data_header(&self) -> usize {
        let interleaves = self.extensions.contains(Extension::Interleaving);
        if interleaves { I_DATA_HEADER_LEN } else { DATA_HEADER_LEN }
    }

    /// What the receiving half has to know of the handshake.
    pub(super) const fn prepare(receiver: &mut Receiver, extensions: Extensions) {
        receiver.expect_gaps(extensions.contains(Extension::PartialReliability));
        receiver.interleave(extensions.contains(Extension::Interleaving));
    }

    /// An I-DATA chunk; true if the packet's next chunk is to be looked at.
    pub(super) fn handle_i_data(
        &mut self,
        path: PathId,
        data: &IData<'_>,
        seen: &mut DataSeen,
    ) -> bool {
        if self.extensions.contains(Extension::Interleaving) {
            if self.note_data(path, data.tsn, data.immediate, data.retransmission, seen) {
                let outcome = self.receiver.handle_i_data(data);
                self.note_outcome(path, data.stream, data.payload.len(), outcome, seen);
            }
            return true;
        }
        // RFC 9260 3.2: a type that is not known and asks to stop there and to be reported.
        if self.state.is_synchronised() {
            let header = CommonHeader {
                source_port: 0,
                destination_port: 0,
                verification_tag: VerificationTag(0),
            };
            let len = I_DATA_HEADER_LEN + data.payload.len();
            let mut buf = vec![0; COMMON_HEADER_LEN + len.next_multiple_of(4)];
            let mut w = PacketWriter::new(&mut buf, header);
            let written = w.i_data(data);
            debug_assert!(written.is_ok(), "the buffer was made for it");
            if let Some(raw) = buf.get(COMMON_HEADER_LEN..COMMON_HEADER_LEN + len) {
                self.report_unrecognized_chunk(path, raw);
            }
        }
        self.stats.dropped += 1;
        false
    }

    /// Which stream's message leaves next, from now on (SCTP_STREAM_SCHEDULER, RFC 8260 4.3.2).
    pub fn set_stream_scheduler(&mut self, answer: &'static Answer<dyn StreamScheduler>) {
        self.config.stream_scheduler = answer;
        self.sender.queue.schedule((answer.make)(&self.config));
    }

    /// What the scheduler is to know of a stream: its priority, where a smaller number comes first, or
    /// its weight (SCTP_STREAM_SCHEDULER_VALUE, RFC 8260 4.3.3). 0 at the beginning.
    ///
    /// # Errors
    ///
    /// There is no such stream.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), SendError> {
        if stream.0 >= self.outbound_streams {
            return Err(SendError::NoSuchStream { stream, streams: self.outbound_streams });
        }
        self.sender.queue.set_value(stream, value);
        self.set_stream_scheduler(self.config.stream_scheduler());
        Ok(())
    }

    /// See [`set_stream_value`](Self::set_stream_value).
    pub fn stream_value(&self, stream: StreamId) -> u16 {
        self.sender.queue.value(stream)
    }
}
