//! The configuration of an association: its constants and its policies.

use std::time::Duration;

use crate::SENDERS;
use crate::auth::ChunkTypes;
use crate::constants::{
    BufferSplitting, BurstRule, ConfigError, Constants, Delivery, PathConfirmation, Procedures,
    Thresholds, with_constants,
};
use crate::kind::{Kind, Value};
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
use crate::policy::{self, Entry, Policy, Setup};
use crate::rng::Ties;
use crate::wire::chunk_type;

mod combinations;
mod parameter;
mod profiles;
mod registry;

pub(crate) use combinations::refused_thresholds;
pub use parameter::Parameter;
use parameter::Setting;
pub use profiles::{DEFAULT_PROFILE, Profile};
pub use registry::Registered;

use Kind::{Bytes, Choice, Count, Flag, Time};

/// The shortest time above zero.
const TICK: Duration = Duration::from_nanos(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

macro_rules! parameters {
    (
        constants {
            $( $(#[doc = $doc:literal])* $name:ident: $ty:ty = $default:expr, $kind:expr; )*
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
            $( pub(crate) $policy: Policy<dyn $trait>, )*
        }

        /// The policies and profiles that can be chosen by name: those of this crate
        /// ([`standard`](Self::standard)), and those of others ([`add`](Self::add)). A scenario,
        /// the command line and the Python package take a registry; an endpoint takes a
        /// configuration that was made from one.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Registry {
            profiles: Vec<Profile>,
            $( $policy: Vec<&'static Entry<dyn $trait>>, )*
        }

        /// Values for some parameters of a [`Config`]; `None` leaves the parameter as it is.
        /// Policies are in text, as [`Policy`] writes them.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Overrides {
            $( $(#[doc = $doc])* pub $name: Option<$ty>, )*
            $( $(#[doc = $policy_doc])* pub $policy: Option<String>, )*
        }

        /// Every parameter of [`Config`]: the constants, then the policies.
        pub static PARAMETERS: &[Parameter] = &[
            $( Parameter {
                name: stringify!($name),
                kind: $kind,
                optional: <$ty as Setting>::OPTIONAL,
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
                kind: Kind::Policy,
                optional: false,
                doc: concat!($( $policy_doc, "\n" ),*),
                get: |config| Value::Name(config.$policy.to_string()),
                set: |overrides, value| match value {
                    Value::Name(text) => {
                        overrides.$policy = Some(text);
                        Some(())
                    }
                    _ => None,
                },
                given: |overrides| overrides.$policy.clone().map(Value::Name),
            }, )*
        ];

        impl Config {
            $( $(#[doc = $doc])* pub fn $name(&self) -> $ty { self.constants.$name } )*
            $( $(#[doc = $policy_doc])*
               pub const fn $policy(&self) -> &Policy<dyn $trait> { &self.$policy } )*

            /// The constants of RFC 9260, section 16.
            pub fn rfc9260() -> Self {
                Self {
                    constants: Constants::rfc9260(),
                    $( $policy: (&policy::$policy::$standard).into(), )*
                }
            }
        }

        impl Overrides {
            pub(crate) fn apply(
                &self,
                config: &mut Config,
                registry: &Registry,
            ) -> Result<(), ConfigError> {
                $( if let Some(value) = self.$name {
                    config.constants.$name = value;
                } )*
                $( if let Some(text) = &self.$policy {
                    config.$policy = registry::read(stringify!($policy), &registry.$policy, text)?;
                } )*
                Ok(())
            }
        }

        impl Registry {
            $( $(#[doc = $policy_doc])*
               pub fn $policy(&self) -> &[&'static Entry<dyn $trait>] { &self.$policy } )*

            /// The policies of this crate, without profiles.
            fn policies() -> Self {
                Self {
                    profiles: Vec::new(),
                    $( $policy: policy::$policy::ENTRIES.to_vec(), )*
                }
            }

            /// The entries for a decision, named as its parameter; empty for other names.
            pub fn entries(&self, decision: &str) -> Vec<Registered> {
                match decision {
                    $( stringify!($policy) => {
                        self.$policy.iter().copied().map(Registered::of).collect()
                    } )*
                    _ => Vec::new(),
                }
            }
        }

        $( impl registry::Addition for &'static Entry<dyn $trait> {
            fn add_to(self, registry: &mut Registry) {
                registry.$policy.retain(|entry| entry.name != self.name);
                registry.$policy.push(self);
            }
        } )*

        impl ConfigBuilder {
            $( $(#[doc = $doc])* #[must_use] pub fn $name(mut self, value: $ty) -> Self {
                self.config.constants.$name = value;
                self
            } )*
            $( $(#[doc = $policy_doc])*
               #[must_use]
               pub fn $policy(mut self, value: impl Into<Policy<dyn $trait>>) -> Self {
                self.config.$policy = value.into();
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

/// The profile [`modern`](Config::modern).
impl Default for Config {
    fn default() -> Self {
        Self::modern()
    }
}

impl Config {
    /// The profile of this name in [`Registry::standard`], or `None`.
    pub fn profile(name: &str) -> Option<Self> {
        Registry::standard().profile(name)
    }

    /// A builder that starts from the default, the profile [`modern`](Self::modern).
    pub fn builder() -> ConfigBuilder {
        Self::modern().to_builder()
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
        Setup::new(&self.constants, self.is_concurrent(), self.probing.entry().name)
    }

    /// The generator that breaks ties, if `tie_seed` asks for one.
    pub(crate) fn ties(&self) -> Option<Box<dyn Ties>> {
        let make = SENDERS.iter().find_map(|sender| sender.ties)?;
        self.tie_seed().map(make)
    }

    /// Whether new data is sent on several paths at a time.
    pub const fn is_concurrent(&self) -> bool {
        self.scheduler.entry().needs.concurrency
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

    /// Sets a parameter to the value that `text` denotes. Bytes may be without a unit. The text of
    /// a policy is not checked before a registry is known ([`ConfigBuilder::overrides`]).
    ///
    /// # Errors
    /// As [`Parameter::set`].
    pub fn set(&mut self, parameter: &Parameter, text: &str) -> Result<(), ConfigError> {
        let value = parameter.read(text)?;
        (parameter.set)(self, value).ok_or_else(|| parameter.refuse(text))
    }
}

impl ConfigBuilder {
    /// Sets every parameter for which there is a value; `registry` has the policies.
    ///
    /// # Errors
    /// The registry has no such policy, or a value for the policy's parameters is not allowed.
    pub fn overrides(
        mut self,
        overrides: &Overrides,
        registry: &Registry,
    ) -> Result<Self, ConfigError> {
        overrides.apply(&mut self.config, registry)?;
        Ok(self)
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
