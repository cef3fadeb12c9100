//! Constants that the application changes while the association exists (RFC 9260 11.1.13,
//! SETPROTOCOLPARAMETERS).

use std::time::Duration;

use super::Association;
use crate::constants::ConfigError;
use crate::path::PathState;
use crate::policy::ack::{AckPolicy, DELAYED};
use crate::policy::entry::Needs;
use crate::time::Time;

impl Association {
    /// Sets RTO.Initial, RTO.Min and RTO.Max (RFC 9260 6.3.1; `SCTP_RTOINFO`). The present RTO of
    /// each path is limited to the new range at once; its timers keep their times.
    ///
    /// # Errors
    ///
    /// A value is out of its range, or RTO.Initial is not between the others.
    pub fn set_rto_limits(
        &mut self,
        initial: Duration,
        min: Duration,
        max: Duration,
    ) -> Result<(), ConfigError> {
        let builder = self.config.to_builder().rto_initial(initial).rto_min(min).rto_max(max);
        self.config = builder.build()?;
        self.paths.iter_mut().for_each(|path| path.limit_rto(initial, min, max));
        Ok(())
    }

    /// Sets SACK.Delay and the number of packets after which a SACK is sent at once (RFC 9260 6.2;
    /// `SCTP_DELAYED_SACK`). They apply from the next packet on.
    ///
    /// # Errors
    ///
    /// A value is out of its range.
    pub fn set_sack_delay(&mut self, delay: Duration, every: u32) -> Result<(), ConfigError> {
        self.config = self.config.to_builder().sack_delay(delay).sack_every(every).build()?;
        self.receiving.ack_policy = self.make_ack_policy();
        if self.sending.loss.watches_time() {
            self.paths.iter_mut().for_each(|path| path.allow_sack_delay(delay));
        }
        Ok(())
    }

    /// The policy of acknowledgements, if the two sides have agreed on what it needs.
    pub(super) fn make_ack_policy(&self) -> Box<dyn AckPolicy> {
        let extensions = self.handshake.extensions;
        let agreed = |needs: Needs| needs.extension.is_none_or(|e| extensions.contains(e));
        let (setup, ack) = (self.config.setup(), self.config.ack());
        if agreed(ack.needs) { ack.make(&setup) } else { DELAYED.make(&setup) }
    }

    /// Sets Max.Burst (RFC 9260 6.1 D; `SCTP_MAX_BURST`).
    ///
    /// # Errors
    ///
    /// The value is out of its range.
    pub fn set_max_burst(&mut self, packets: u32) -> Result<(), ConfigError> {
        self.config = self.config.to_builder().max_burst(packets).build()?;
        Ok(())
    }

    /// Sets HB.interval (RFC 9260 8.3; `spp_hbinterval`); `None` ends the HEARTBEATs of idle paths
    /// (11.1.9, CHANGEHEARTBEAT).
    ///
    /// # Errors
    ///
    /// The value is out of its range.
    pub fn set_heartbeat_interval(
        &mut self,
        now: Time,
        interval: Option<Duration>,
    ) -> Result<(), ConfigError> {
        self.config = self.config.to_builder().heartbeat_interval(interval).build()?;
        if !self.state.is_synchronised() {
            return Ok(());
        }
        for path in self.paths.ids() {
            let p = &self.paths[path];
            // A HEARTBEAT that is outstanding, and one that is to confirm a path, stay as they are.
            let idle = p.heartbeat_deadline().is_none();
            if idle && matches!(p.state(), PathState::Active | PathState::Inactive) {
                self.model.procedures.schedule_heartbeat(&mut sender!(self), now, path);
            }
        }
        Ok(())
    }

    /// Limits the payload of a DATA chunk to this number of bytes: larger messages are fragmented
    /// (`SCTP_MAXSEG`, RFC 6458 8.1.16). `None` leaves it to the path MTU.
    pub fn set_max_fragment(&mut self, bytes: Option<u32>) {
        self.sending.most_payload = bytes.map_or(usize::MAX, |bytes| bytes.max(1) as usize);
        self.sending.fit(&self.paths);
    }
}
