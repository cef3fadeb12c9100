//! The configuration of an association: its constants and its policies.

use std::time::Duration;

use crate::auth::ChunkTypes;
use crate::constants::{
    BufferSplitting, BurstRule, ConfigError, Constants, PathConfirmation, Procedures, Thresholds,
    with_constants,
};
use crate::policy::ack::AckPolicy;
use crate::policy::congestion::CongestionController;
use crate::policy::cwnd_update::CwndUpdate;
use crate::policy::failover::FailoverPolicy;
use crate::policy::loss::LossDetector;
use crate::policy::probing::ProbingPolicy;
use crate::policy::retransmission::RetransmissionPolicy;
use crate::policy::rtt_sampling::RttSampling;
use crate::policy::scheduler::Scheduler;
use crate::policy::stream_scheduler::StreamScheduler;
use crate::policy::{
    Answer, Setup, ack, congestion, cwnd_update, failover, loss, probing, retransmission,
    rtt_sampling, scheduler, stream_scheduler,
};
use crate::wire::chunk_type;

mod combinations;
mod profiles;

pub(crate) use combinations::refused_thresholds;
pub use profiles::{PROFILES, Profile};

macro_rules! policies {
    ($( $(#[$doc:meta])* $name:ident: dyn $policy:ident = $default:expr; )*) => {
        /// Constants and policies of an association, built by [`Config::builder`] or taken from a
        /// named [`profile`](Config::profile).
        #[derive(Clone, Debug)]
        pub struct Config {
            pub(crate) constants: Constants,
            $( pub(crate) $name: &'static Answer<dyn $policy>, )*
        }

        impl Config {
            $( $(#[$doc])* pub fn $name(&self) -> &'static Answer<dyn $policy> { self.$name } )*

            /// The constants of RFC 9260, section 16.
            pub fn rfc9260() -> Self {
                Self { constants: Constants::rfc9260(), $( $name: $default, )* }
            }
        }

        impl ConfigBuilder {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, value: &'static Answer<dyn $policy>) -> Self {
                    self.config.$name = value;
                    self
                }
            )*
        }
    };
}

policies! {
    /// Which path a retransmission is sent on.
    retransmission: dyn RetransmissionPolicy = &retransmission::HYBRID;
    /// When a chunk counts as lost.
    loss: dyn LossDetector = &loss::STANDARD;
    /// How a congestion window grows and is reduced.
    congestion: dyn CongestionController = &congestion::RFC9260;
    /// Which acknowledgements may increase a window.
    cwnd_update: dyn CwndUpdate = &cwnd_update::STANDARD;
    /// Which path takes new data.
    scheduler: dyn Scheduler = &scheduler::PRIMARY;
    /// When a path fails over and recovers.
    failover: dyn FailoverPolicy = &failover::STANDARD;
    /// When and on which path an acknowledgement is sent.
    ack: dyn AckPolicy = &ack::DELAYED;
    /// Which acknowledgements count as samples of the round-trip time.
    rtt_sampling: dyn RttSampling = &rtt_sampling::KARN;
    /// Which stream's message is sent next.
    stream_scheduler: dyn StreamScheduler = &stream_scheduler::FIRST_COME;
    /// When a path is probed.
    probing: dyn ProbingPolicy = &probing::IDLE;
}

macro_rules! constants {
    ($( $(#[$doc:meta])* $name:ident: $ty:ty = $default:expr; )*) => {
        impl Config {
            $( $(#[$doc])* pub fn $name(&self) -> $ty { self.constants.$name } )*
        }

        impl ConfigBuilder {
            $( $(#[$doc])* #[must_use] pub fn $name(mut self, value: $ty) -> Self {
                self.config.constants.$name = value;
                self
            } )*
        }
    };
}

with_constants!(constants);

impl Default for Config {
    fn default() -> Self {
        Self::rfc9260()
    }
}

impl Config {
    /// The profile of this name, or `None`; [`PROFILES`] lists them.
    pub fn profile(name: &str) -> Option<Self> {
        PROFILES.iter().find(|p| p.name == name).map(|p| (p.make)())
    }

    /// A builder that starts from `rfc9260`.
    pub fn builder() -> ConfigBuilder {
        Self::rfc9260().to_builder()
    }

    /// A builder that starts from this configuration.
    pub fn to_builder(&self) -> ConfigBuilder {
        ConfigBuilder { config: self.clone() }
    }

    /// The constants.
    pub const fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The setup that this association's policies are made from.
    pub const fn setup(&self) -> Setup<'_> {
        Setup { constants: &self.constants, scheduler: self.scheduler, probing: self.probing }
    }

    /// The path thresholds.
    pub fn thresholds(&self) -> Thresholds {
        self.constants.thresholds()
    }

    /// Chunk types that the local side accepts only if authenticated.
    pub(crate) fn demanded_chunks(&self) -> ChunkTypes {
        // RFC 5061 4.1: both must be authenticated.
        let own: &[u8] = if self.dynamic_addresses() {
            &[chunk_type::ASCONF, chunk_type::ASCONF_ACK]
        } else {
            &[]
        };
        self.authenticated_chunks().or(ChunkTypes::authenticated(own))
    }
}

/// Sets parameters and rejects senseless combinations.
#[derive(Clone, Debug)]
pub struct ConfigBuilder {
    config: Config,
}

impl ConfigBuilder {
    /// The configuration, if every value and combination is allowed.
    pub fn build(self) -> Result<Config, ConfigError> {
        self.config.constants.check()?;
        match combinations::refused(&self.config) {
            Some(error) => Err(error),
            None => Ok(self.config),
        }
    }
}
