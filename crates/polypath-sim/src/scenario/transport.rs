//! `[transport]` and `[policy]`: every parameter of the protocol core by its name.

use std::fmt;
use std::str::FromStr;

use polypath_proto::{
    BufferSplitting, BurstRule, ChunkTypes, Config, ConfigBuilder, PROFILES, PathConfirmation,
    Procedures, policy,
};
use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::key::Key;
use crate::units::{Size, Span, UnitError};

/// A parameter that can be switched off: a value, or "off".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch<T> {
    /// Switched off.
    Off,
    /// Switched on, with this value.
    On(T),
}

impl<T> Switch<T> {
    fn option(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::On(value) => Some(value),
        }
    }
}

impl<T: FromStr<Err = UnitError>> FromStr for Switch<T> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "off" => Ok(Self::Off),
            text => text.parse().map(Self::On).map_err(|e: UnitError| format!("{e}, or \"off\"")),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Switch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On(value) => value.fmt(f),
        }
    }
}

impl<T: fmt::Display> Serialize for Switch<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: FromStr<Err = UnitError>> Deserialize<'de> for Switch<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A threshold, such as a number of errors; "off" means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold(pub Option<u32>);

impl Serialize for Threshold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(errors) => serializer.serialize_u32(errors),
            None => serializer.serialize_str("off"),
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number, or \"off\"")]
        enum Text {
            Errors(u32),
            Word(Off),
        }
        #[derive(Deserialize)]
        enum Off {
            #[serde(rename = "off")]
            Off,
        }
        Text::deserialize(deserializer).map(|text| match text {
            Text::Errors(errors) => Self(Some(errors)),
            Text::Word(Off::Off) => Self(None),
        })
    }
}

impl Parameter<Option<u32>> for Threshold {
    fn value(self) -> Result<Option<u32>, String> {
        Ok(self.0)
    }
    fn of(value: Option<u32>) -> Self {
        Self(value)
    }
}

/// Encapsulation of an association's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncapsulationSpec {
    /// SCTP directly over IP, protocol 132.
    #[default]
    Ip,
    /// SCTP over UDP, port 9899 on both sides (RFC 6951).
    Udp,
}

/// A parameter of the core whose value is one of a few names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<T>(pub T);

impl<T: fmt::Display> Serialize for Choice<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err = String>> Deserialize<'de> for Choice<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

impl<T> Parameter<T> for Choice<T> {
    fn value(self) -> Result<T, String> {
        Ok(self.0)
    }
    fn of(value: T) -> Self {
        Self(value)
    }
}

/// Converts a parameter to the type that the core's builder takes.
trait Parameter<T>: Sized {
    fn value(self) -> Result<T, String>;
    /// Converts the core's value back.
    fn of(value: T) -> Self;
}

impl<T> Parameter<T> for T {
    fn value(self) -> Result<T, String> {
        Ok(self)
    }
    fn of(value: T) -> Self {
        value
    }
}

impl Parameter<std::time::Duration> for Span {
    fn value(self) -> Result<std::time::Duration, String> {
        Ok(self.duration())
    }
    fn of(value: std::time::Duration) -> Self {
        Self(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Parameter<u32> for Size {
    fn value(self) -> Result<u32, String> {
        u32::try_from(self.0).map_err(|_| format!("{self} is too much; allowed: below 4 GiB"))
    }
    fn of(value: u32) -> Self {
        Self(value.into())
    }
}

impl Parameter<u16> for Size {
    fn value(self) -> Result<u16, String> {
        u16::try_from(self.0).map_err(|_| format!("{self} is too much; allowed: below 64 KiB"))
    }
    fn of(value: u16) -> Self {
        Self(value.into())
    }
}

impl Parameter<Option<std::time::Duration>> for Switch<Span> {
    fn value(self) -> Result<Option<std::time::Duration>, String> {
        Ok(self.option().map(Span::duration))
    }
    fn of(value: Option<std::time::Duration>) -> Self {
        value.map_or(Self::Off, |value| Self::On(Span::of(value)))
    }
}

impl Parameter<Option<u32>> for Switch<Size> {
    fn value(self) -> Result<Option<u32>, String> {
        self.option().map(Parameter::value).transpose()
    }
    fn of(value: Option<u32>) -> Self {
        value.map_or(Self::Off, |value| Self::On(Size::of(value)))
    }
}

macro_rules! transport {
    ($( $(#[$doc:meta])* $name:ident: $ty:ty, )*) => {
        /// `[transport]`: parameters of both sides, and of one side where they differ.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Transport {
            /// The named set of constants and policies to start from; "rfc9260" by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub profile: Option<String>,
            /// SCTP over IP (default) or over UDP.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub encapsulation: Option<EncapsulationSpec>,
            $( $(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")]
               pub $name: Option<$ty>, )*
            /// Overrides for the side that opens the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sender: Option<TransportParameters>,
            /// Overrides for the side that accepts the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub receiver: Option<TransportParameters>,
        }

        /// Parameters of one side; those that are not set come from `[transport]`.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct TransportParameters {
            $( $(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")]
               pub $name: Option<$ty>, )*
        }

        impl Transport {
            fn common(&self) -> TransportParameters {
                TransportParameters { $( $name: self.$name, )* }
            }
        }

        impl TransportParameters {
            /// Names of all parameters.
            pub const NAMES: &[&str] = &[$( stringify!($name) ),*];

            fn apply(&self, mut builder: ConfigBuilder, at: &Key) -> Result<ConfigBuilder, Problem> {
                $( if let Some(value) = self.$name {
                    let value = value.value()
                        .map_err(|text| Problem::new(at.field(stringify!($name)), text))?;
                    builder = builder.$name(value);
                } )*
                Ok(builder)
            }

            /// Every parameter of a configuration.
            fn of(config: &Config) -> Self {
                Self { $( $name: Some(<$ty>::of(config.$name())), )* }
            }

            fn gives(&self, name: &str) -> bool {
                match name {
                    $( stringify!($name) => self.$name.is_some(), )*
                    _ => false,
                }
            }
        }
    };
}

transport! {
    /// RTO.Initial: retransmission timeout before the first RTT sample.
    rto_initial: Span,
    /// RTO.Min: lower bound of the retransmission timeout.
    rto_min: Span,
    /// RTO.Max: upper bound of the retransmission timeout.
    rto_max: Span,
    /// Max.Burst: number of packets that one event may add to the flight size of a path.
    max_burst: u32,
    /// When Max.Burst applies, and its reference point: "ack-clocked" (default), "flight-size",
    /// "after-retransmission" or "packet-count".
    burst_rule: Choice<BurstRule>,
    /// Whether new data waits while any chunk is to be retransmitted. If false, new data is sent
    /// even while the window of another path holds back a retransmission.
    new_data_waits: bool,
    /// Interpretation of the RFC that the sender follows: "rfc9260" or "ns2".
    procedures: Choice<Procedures>,
    /// Whether data waits for the confirmation of paths: "alongside-data" (default), "before-data"
    /// or "off".
    path_confirmation: Choice<PathConfirmation>,
    /// Valid.Cookie.Life: how long a state cookie is accepted.
    cookie_life: Span,
    /// Association.Max.Retrans: consecutive errors that end the association.
    association_max_retrans: u32,
    /// Path.Max.Retrans (PMR): a path is inactive once its error count exceeds this.
    path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans (PFMR): a path is potentially failed once its error count
    /// exceeds this.
    potentially_failed_max_retrans: u32,
    /// Congestion window, in PMDCS, of a potentially failed path after its probe was acknowledged
    /// (CMT-PF).
    potentially_failed_cwnd: u32,
    /// Change Primary Threshold (CPT): a failover is permanent once the primary's error count
    /// exceeds this; "off" means never.
    change_primary_threshold: Threshold,
    /// Max.Init.Retransmits: attempts of INIT and COOKIE ECHO after the first.
    max_init_retransmits: u32,
    /// HB.interval: added to the RTO between heartbeats on an idle path, or "off".
    heartbeat_interval: Switch<Span>,
    /// HB.Max.Burst: HEARTBEATs to unconfirmed paths that may be unacknowledged within one RTO.
    hb_max_burst: u32,
    /// SACK.Delay: longest delay of an acknowledgement.
    sack_delay: Span,
    /// Number of packets with DATA after which a SACK is sent at the latest.
    sack_every: u32,
    /// Whether the first DATA chunk of an association is acknowledged at once.
    first_sack_at_once: bool,
    /// Whether T3-rtx spares chunks sent within the last smoothed round-trip time (Iyengar 2004,
    /// IV.B).
    srtt_heuristic: bool,
    /// Seed of ns-2's generator, which then breaks ties between paths; "off" uses the run's seed.
    tie_seed: Threshold,
    /// Number of missing reports that make a chunk lost.
    fast_retransmit_reports: u32,
    /// Whether messages may be abandoned, if both sides enable this (RFC 3758).
    partial_reliability: bool,
    /// Whether messages of several streams are interleaved, if both sides enable this (RFC 8260).
    interleaving: bool,
    /// Offer NR-SACKs: if both sides offer them, the receiver reports the data that it will not
    /// renege on.
    nr_sack: bool,
    /// Which buffers are split between the paths in CMT: "off" (default), "send", "receive" or
    /// "both".
    buffer_splitting: Choice<BufferSplitting>,
    /// Receive buffer, announced as a_rwnd.
    receive_buffer: Size,
    /// Send buffer: messages not yet sent or not yet acknowledged.
    send_buffer: Size,
    /// Largest message accepted for sending.
    max_message_size: Size,
    /// Requested number of outgoing streams.
    outbound_streams: u16,
    /// Allowed number of incoming streams.
    inbound_streams: u16,
    /// Initial slow start threshold; "off" uses the peer's a_rwnd.
    initial_ssthresh: Switch<Size>,
    /// Initial congestion window, in PMDCS; 0 uses the formula of RFC 9260.
    initial_cwnd: u32,
    /// Lower bound, in PMDCS, of ssthresh after a loss and of cwnd after idleness.
    cwnd_floor: u32,
    /// Largest IP packet of a path, headers included.
    path_mtu: Size,
    /// Maximum number of paths of an association.
    max_paths: u8,
    /// Offer authenticated chunks (RFC 4895).
    authentication: bool,
    /// Chunk types that are accepted only if they are authenticated, separated by commas, or
    /// "none".
    authenticated_chunks: Choice<ChunkTypes>,
    /// Offer dynamic addresses; needs `authentication` (RFC 5061).
    dynamic_addresses: bool,
    /// Also change addresses without authentication, if the peer has none.
    unauthenticated_addresses: bool,
    /// Adaptation Layer Indication announced in the handshake: a number, or "off" (RFC 5061 4.2.6).
    adaptation_layer: Threshold,
    /// Offer stream reconfiguration (RFC 6525).
    stream_reconfiguration: bool,
    /// Search for the largest packet of each path, up to `path_mtu` (RFC 8899).
    path_mtu_discovery: bool,
    /// Offer explicit congestion notification (RFC 4960 Appendix A).
    ecn: bool,
    /// Pair every local with every remote address.
    full_mesh: bool,
}

macro_rules! policies {
    ($( $(#[$doc:meta])* $name:ident, )*) => {
        /// `[policy]`: the policy for each decision, by name.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Policy {
            $( $(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")]
               pub $name: Option<String>, )*
            /// Overrides for the side that opens the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sender: Option<PolicyNames>,
            /// Overrides for the side that accepts the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub receiver: Option<PolicyNames>,
        }

        /// Policies of one side; those that are not set come from `[policy]`.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct PolicyNames {
            $( $(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")]
               pub $name: Option<String>, )*
        }

        impl Policy {
            fn common(&self) -> PolicyNames {
                PolicyNames { $( $name: self.$name.clone(), )* }
            }
        }

        impl PolicyNames {
            fn has(name: &str) -> bool {
                [$( stringify!($name) ),*].contains(&name)
            }

            fn gives(&self, name: &str) -> bool {
                false $( || (name == stringify!($name) && self.$name.is_some()) )*
            }

            fn apply(&self, mut builder: ConfigBuilder, at: &Key) -> Result<ConfigBuilder, Problem> {
                $( if let Some(name) = &self.$name {
                    let answers = policy::$name::ANSWERS;
                    let answer = policy::find(answers, name).ok_or_else(|| {
                        let known = answers.iter().map(|answer| answer.name);
                        Problem::unknown(at.field(stringify!($name)), "policy", name, known)
                    })?;
                    builder = builder.$name(answer);
                } )*
                Ok(builder)
            }

            /// The name of every policy of a configuration.
            fn of(config: &Config) -> Self {
                Self { $( $name: Some(config.$name().name.to_owned()), )* }
            }
        }
    };
}

policies! {
    /// Which path a retransmission is sent on.
    retransmission,
    /// When a chunk counts as lost.
    loss,
    /// How a congestion window grows and shrinks.
    congestion,
    /// When an acknowledgement may increase a congestion window.
    cwnd_update,
    /// Which path new data is sent on.
    scheduler,
    /// When a path is considered failed, and when it is used again.
    failover,
    /// When and on which path an acknowledgement is sent.
    ack,
    /// Which acknowledgements count as samples of the round-trip time.
    rtt_sampling,
    /// Which stream's message is sent next.
    stream_scheduler,
    /// When a path is probed.
    probing,
}

/// A side of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that opens the association.
    Sender,
    /// The side that accepts the association.
    Receiver,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// All parameters and policies of one side: those of the scenario and, where it sets none, those of
/// its profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// Every parameter.
    pub transport: TransportParameters,
    /// Every policy.
    pub policy: PolicyNames,
}

impl Effective {
    pub(super) fn new(config: &Config) -> Self {
        Self { transport: TransportParameters::of(config), policy: PolicyNames::of(config) }
    }
}

/// `[transport]` and `[policy]` at one place of a scenario: at its root, or in one association.
#[derive(Clone, Debug)]
pub(crate) struct Layer<'a> {
    /// Key of the table that contains both.
    pub(crate) at: Key,
    pub(crate) transport: &'a Transport,
    pub(crate) policy: &'a Policy,
}

impl Layer<'_> {
    fn side(&self, side: Side) -> (&Option<TransportParameters>, &Option<PolicyNames>) {
        match side {
            Side::Sender => (&self.transport.sender, &self.policy.sender),
            Side::Receiver => (&self.transport.receiver, &self.policy.receiver),
        }
    }

    fn apply(&self, side: Side, mut builder: ConfigBuilder) -> Result<ConfigBuilder, Problem> {
        let (transport_at, policy_at) = (self.at.field("transport"), self.at.field("policy"));
        builder = self.policy.common().apply(builder, &policy_at)?;
        builder = self.transport.common().apply(builder, &transport_at)?;
        let (parameters, policies) = self.side(side);
        if let Some(policies) = policies {
            builder = policies.apply(builder, &policy_at.field(side.name()))?;
        }
        if let Some(parameters) = parameters {
            builder = parameters.apply(builder, &transport_at.field(side.name()))?;
        }
        Ok(builder)
    }

    fn says_something(&self) -> bool {
        *self.transport != Transport::default() || *self.policy != Policy::default()
    }

    /// The key of a parameter or policy, if this layer sets it.
    fn key_of(&self, name: &str, side: Side) -> Option<Key> {
        let (parameters, policies) = self.side(side);
        let own = parameters.as_ref().is_some_and(|p| p.gives(name))
            || policies.as_ref().is_some_and(|p| p.gives(name));
        let common = self.transport.common().gives(name) || self.policy.common().gives(name);
        let table = if PolicyNames::has(name) { "policy" } else { "transport" };
        match (own, common) {
            (true, _) => Some(self.at.field(table).field(side.name()).field(name)),
            (false, true) => Some(self.at.field(table).field(name)),
            (false, false) => None,
        }
    }
}

/// The configuration of one side; each layer overrides those before it.
pub(crate) fn config(layers: &[Layer<'_>], side: Side) -> Result<Config, Problem> {
    let given =
        layers.iter().rev().find_map(|layer| Some((layer, layer.transport.profile.as_deref()?)));
    let profile = given.map_or("rfc9260", |(_, name)| name);
    let config = Config::profile(profile).ok_or_else(|| {
        let at = given.map_or_else(Key::root, |(layer, _)| layer.at.clone());
        let known = PROFILES.iter().map(|known| known.name);
        Problem::unknown(at.field("transport").field("profile"), "profile", profile, known)
    })?;
    let mut builder = config.to_builder();
    for layer in layers {
        builder = layer.apply(side, builder)?;
    }
    builder.build().map_err(|error| {
        let known = layers.iter().rev().find_map(|layer| layer.key_of(error.parameter, side));
        let table = if PolicyNames::has(error.parameter) { "policy" } else { "transport" };
        // An error in a parameter that no layer sets comes from the last layer that sets any.
        let key = known.unwrap_or_else(|| {
            let last = layers.iter().rev().find(|layer| layer.says_something());
            let at = last.map_or_else(Key::root, |layer| layer.at.clone());
            at.field(table).field(error.parameter)
        });
        Problem::new(key, format!("found {}; allowed: {}", error.value, error.allowed))
    })
}

/// Encapsulation of the packets of an association with these layers.
pub(crate) fn encapsulation(layers: &[Layer<'_>]) -> EncapsulationSpec {
    layers.iter().rev().find_map(|layer| layer.transport.encapsulation).unwrap_or_default()
}
