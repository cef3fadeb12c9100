//! Heartbeat Info, the parameter of HEARTBEAT and HEARTBEAT ACK, RFC 9260 3.3.5.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |           Type = 1            |            Length             |
//! +-------------------------------+-------------------------------+
//! \               Sender-Specific Heartbeat Info                  \
//! +---------------------------------------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Heartbeat Info parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn heartbeat_info(&mut self, info: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::HEARTBEAT_INFO, info)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};

    #[test]
    fn bytes() {
        let info = &[9, 8];
        check(|p| p.heartbeat_info(info), Parameter::HeartbeatInfo(info), &[0, 1, 0, 6, 9, 8]);
    }
}
