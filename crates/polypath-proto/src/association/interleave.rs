//! User message interleaving: I-DATA in place of DATA, if both sides offered it (RFC 8260 2.2).

use super::data::DataSeen;
use super::{Receiver, Violation};
use crate::extension::Extension;
use crate::ids::PathId;
use crate::wire::IData;

impl Receiver<'_> {
    /// RFC 8260 2.2.1: "I-DATA chunks MUST be used for all user messages and DATA-chunk MUST NOT be
    /// used", or the reverse without the extension. An error if the peer violates that.
    pub(super) fn check_kind(&self, interleaved: bool) -> Result<(), Violation> {
        let agreed = self.has(Extension::Interleaving);
        if agreed == interleaved || !self.may_receive_data {
            return Ok(());
        }
        Err(if agreed {
            "DATA where messages are interleaved"
        } else {
            "I-DATA where messages are not interleaved"
        })
    }

    /// Processes an I-DATA chunk.
    pub(super) fn handle_i_data(
        &mut self,
        path: PathId,
        data: &IData<'_>,
        seen: &mut DataSeen,
    ) -> Result<(), Violation> {
        let head = data.into();
        self.check_kind(true)?;
        if self.note_data(path, head, seen) {
            let outcome = self.receiving.handle_i_data(data);
            self.note_outcome(path, head, outcome, seen)?;
        }
        Ok(())
    }
}
