//! Splits the buffers between the paths (`buffer_splitting`), so that a path that stalls does not
//! take all of them.
//!
//! Dreibholz, Becke, Rathgeb, Tuexen, "On the Use of Concurrent Multipath Transfer over Asymmetric
//! Paths" (2010), and draft-tuexen-tsvwg-sctp-multipath: with n paths, new data is sent on one
//! while less than an n-th part of the buffer is outstanding on it. usrsctp: sctp_buffer_splitting.

use super::Sender;
use crate::constants::BufferSplitting;
use crate::path::PathState;

impl Sender<'_> {
    /// New data is sent on a path only if fewer bytes than this are outstanding on it.
    pub(super) fn path_share(&self) -> u32 {
        let splitting = self.config.buffer_splitting();
        if splitting == BufferSplitting::Off || !self.sending.is_concurrent() {
            return u32::MAX;
        }
        let active = self.paths.iter().filter(|p| p.state() == PathState::Active).count();
        let paths = active.max(1) as u32;
        let sender = &self.sending;
        let send = sender.tuning.size() as u32 / paths;
        let receive = sender.peer_rwnd.saturating_add(sender.flight.bytes()) / paths;
        let share = match splitting {
            BufferSplitting::Off => u32::MAX,
            BufferSplitting::Send => send,
            BufferSplitting::Receive => receive,
            BufferSplitting::Both => send.min(receive),
        };
        // A path with nothing outstanding may always send.
        share.max(1)
    }
}
