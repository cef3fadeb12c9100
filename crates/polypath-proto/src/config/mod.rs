//! The configuration of an association: its constants and its policies.

use std::time::Duration;

use crate::auth::ChunkTypes;
use crate::constants::{
    BufferSplitting, BurstRule, ConfigError, Constants, PathConfirmation, Procedures, Thresholds,
    with_constants,
};
use crate::mrg32k3a::LARGEST_SEED;
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
use crate::policy::{self, Answer, Setup};
use crate::wire::chunk_type;

mod combinations;
mod parameter;
mod profiles;

pub(crate) use combinations::refused_thresholds;
use parameter::Setting;
pub use parameter::{Kind, Ns2, Parameter, Value};
pub use profiles::{PROFILES, Profile};

use Kind::{Bytes, Choice, Count, Flag, Policy, Time};
use Ns2::{Ignored, Only, Variable};

/// The shortest time above zero.
const TICK: Duration = Duration::from_nanos(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

macro_rules! parameters {
    (
        constants {
            $( $(#[doc = $doc:literal])* $name:ident: $ty:ty = $default:expr, $kind:expr, $ns2:expr; )*
        }
        policies {
            $( $(#[doc = $policy_doc:literal])* $policy:ident: $trait:ident = $standard:ident; )*
        }
    ) => {
        /// Constants and policies of an association, built by [`Config::builder`] or taken from a
        /// named [`profile`](Config::profile).
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            pub(crate) constants: Constants,
            $( pub(crate) $policy: &'static Answer<dyn $trait>, )*
        }

        /// Values for some parameters of a [`Config`]; `None` leaves the parameter as it is.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Overrides {
            $( $(#[doc = $doc])* pub $name: Option<$ty>, )*
            $( $(#[doc = $policy_doc])* pub $policy: Option<&'static Answer<dyn $trait>>, )*
        }

        /// Every parameter of [`Config`]: the constants, then the policies.
        pub static PARAMETERS: &[Parameter] = &[
            $( Parameter {
                name: stringify!($name),
                kind: $kind,
                optional: <$ty as Setting>::OPTIONAL,
                ns2: $ns2,
                doc: concat!($( $doc, "\n" ),*),
                get: |config| Setting::to_value(config.constants.$name),
                set: |overrides, value| {
                    overrides.$name = Some(Setting::from_value(value)?);
                    Some(())
                },
                given: |overrides| overrides.$name.map(Setting::to_value),
            }, )*
            $( Parameter {
                name: stringify!($policy),
                kind: Policy(|| {
                    let all = policy::$policy::ANSWERS.iter();
                    all.map(|answer| (answer.name, answer.summary)).collect()
                }),
                optional: false,
                ns2: Ns2::Policy,
                doc: concat!($( $policy_doc, "\n" ),*),
                get: |config| Value::Name(config.$policy.name.to_owned()),
                set: |overrides, value| match value {
                    Value::Name(name) => {
                        overrides.$policy = policy::find(policy::$policy::ANSWERS, &name);
                        overrides.$policy.map(drop)
                    }
                    _ => None,
                },
                given: |overrides| {
                    overrides.$policy.map(|answer| Value::Name(answer.name.to_owned()))
                },
            }, )*
        ];

        impl Config {
            $( $(#[doc = $doc])* pub fn $name(&self) -> $ty { self.constants.$name } )*
            $( $(#[doc = $policy_doc])*
               pub fn $policy(&self) -> &'static Answer<dyn $trait> { self.$policy } )*

            /// The constants of RFC 9260, section 16.
            pub fn rfc9260() -> Self {
                Self {
                    constants: Constants::rfc9260(),
                    $( $policy: &policy::$policy::$standard, )*
                }
            }
        }

        impl Overrides {
            pub(crate) fn apply(&self, config: &mut Config) {
                $( if let Some(value) = self.$name {
                    config.constants.$name = value;
                } )*
                $( if let Some(answer) = self.$policy {
                    config.$policy = answer;
                } )*
            }
        }

        impl ConfigBuilder {
            $( $(#[doc = $doc])* #[must_use] pub fn $name(mut self, value: $ty) -> Self {
                self.config.constants.$name = value;
                self
            } )*
            $( $(#[doc = $policy_doc])*
               #[must_use]
               pub fn $policy(mut self, value: &'static Answer<dyn $trait>) -> Self {
                self.config.$policy = value;
                self
            } )*
        }
    };
}

with_constants! {
    parameters
    policies {
        /// Which path a retransmission is sent on.
        retransmission: RetransmissionPolicy = HYBRID;
        /// When a chunk counts as lost.
        loss: LossDetector = STANDARD;
        /// How a congestion window grows and is reduced.
        congestion: CongestionController = RFC9260;
        /// Which acknowledgements may increase a window.
        cwnd_update: CwndUpdate = STANDARD;
        /// Which path takes new data.
        scheduler: Scheduler = PRIMARY;
        /// When a path fails over and recovers.
        failover: FailoverPolicy = STANDARD;
        /// When and on which path an acknowledgement is sent.
        ack: AckPolicy = DELAYED;
        /// Which acknowledgements count as samples of the round-trip time.
        rtt_sampling: RttSampling = KARN;
        /// Which stream's message is sent next.
        stream_scheduler: StreamScheduler = FIRST_COME;
        /// When a path is probed.
        probing: ProbingPolicy = IDLE;
    }
}

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

impl Overrides {
    /// The value that they give to a parameter, if any.
    pub fn get(&self, parameter: &Parameter) -> Option<Value> {
        (parameter.given)(self)
    }

    /// Sets a parameter to the value that `text` denotes. Bytes may be without a unit.
    ///
    /// # Errors
    /// As [`Parameter::set`].
    pub fn set(&mut self, parameter: &Parameter, text: &str) -> Result<(), ConfigError> {
        let value = parameter.read(text)?;
        (parameter.set)(self, value).ok_or_else(|| parameter.refuse(text))
    }
}

impl ConfigBuilder {
    /// Sets every parameter for which there is a value.
    #[must_use]
    pub fn overrides(mut self, overrides: &Overrides) -> Self {
        overrides.apply(&mut self.config);
        self
    }

    /// The configuration, if every value and combination is allowed.
    pub fn build(self) -> Result<Config, ConfigError> {
        for parameter in PARAMETERS {
            parameter.check(&self.config)?;
        }
        self.config.constants.check()?;
        match combinations::refused(&self.config) {
            Some(error) => Err(error),
            None => Ok(self.config),
        }
    }
}
