//! `[transport]` and `[policy]`: every parameter of the protocol core by its name.

use std::fmt;
use std::str::FromStr;

use polypath_proto::{
    BufferSplitting, BurstRule, ChunkTypes, Config, ConfigBuilder, PROFILES, PathConfirmation,
    Procedures, policy,
};
use serde::{Deserialize, Serialize};

use super::Key;
use super::error::Problem;
use crate::units::{Size, Span, UnitError};

/// A parameter that can be switched off: a value, or "off".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch<T> {
    /// Switched off.
    Off,
    /// With this value.
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

/// A number, such as of errors, or "off" for never.
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

/// How the IP packets of an association are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncapsulationSpec {
    /// SCTP directly over IP, protocol 132.
    #[default]
    Ip,
    /// SCTP over UDP, port 9899 on both sides (RFC 6951).
    Udp,
}

/// A parameter of the core that is one of a few names.
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

/// A value as the core's builder takes it.
trait Parameter<T>: Sized {
    fn value(self) -> Result<T, String>;
    /// And back.
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
            /// What is different at the side that opens the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sender: Option<TransportParameters>,
            /// What is different at the side that accepts the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub receiver: Option<TransportParameters>,
        }

        /// Parameters of one side; what is not given comes from `[transport]`.
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
    /// Max.Burst: packets that one event may add to what is in flight on a path.
    max_burst: u32,
    /// When Max.Burst holds and from where it counts: "ack-clocked" (default), "flight-size",
    /// "after-retransmission" or "packet-count".
    burst_rule: Choice<BurstRule>,
    /// New data waits while anything is to be sent again; if false it overtakes what another path's
    /// window holds back.
    new_data_waits: bool,
    /// Whose reading of the RFC the sender follows: "rfc9260" or "ns2".
    procedures: Choice<Procedures>,
    /// Whether data waits for the paths: "alongside-data" (default), "before-data" or "off".
    path_confirmation: Choice<PathConfirmation>,
    /// Valid.Cookie.Life: how long a state cookie is accepted.
    cookie_life: Span,
    /// Association.Max.Retrans: consecutive errors that end the association.
    association_max_retrans: u32,
    /// Path.Max.Retrans (PMR): a path is inactive once its error count exceeds this.
    path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans (PFMR): a path is potentially failed once its error count exceeds
    /// this.
    potentially_failed_max_retrans: u32,
    /// Congestion window of a potentially failed path whose probe was answered, in PMDCS (CMT-PF).
    potentially_failed_cwnd: u32,
    /// Change Primary Threshold (CPT): a failover is permanent once the primary's error count exceeds
    /// this, or "off".
    change_primary_threshold: Threshold,
    /// Max.Init.Retransmits: attempts of INIT and COOKIE ECHO after the first.
    max_init_retransmits: u32,
    /// HB.interval: added to the RTO between heartbeats on an idle path, or "off".
    heartbeat_interval: Switch<Span>,
    /// HB.Max.Burst: unconfirmed addresses that are probed at a time.
    hb_max_burst: u32,
    /// SACK.Delay: longest wait before data is acknowledged.
    sack_delay: Span,
    /// A SACK at the latest after this many packets with DATA.
    sack_every: u32,
    /// The first DATA chunk of an association is acknowledged at once.
    first_sack_at_once: bool,
    /// T3-rtx leaves alone what was sent within the last smoothed round-trip time (Iyengar 2004, IV.B).
    srtt_heuristic: bool,
    /// Ties between paths are decided as ns-2's generator does from this seed, or "off" by the run's seed.
    tie_seed: Threshold,
    /// Missing reports that make a chunk lost.
    fast_retransmit_reports: u32,
    /// Messages may be given up, if both sides have this (RFC 3758).
    partial_reliability: bool,
    /// Messages of several streams are interleaved, if both sides have this (RFC 8260).
    interleaving: bool,
    /// The receiver says by NR-SACKs what it will not drop again, if both sides offer it.
    nr_sack: bool,
    /// Which buffers are split between the paths in CMT: "off" (default), "send", "receive" or "both".
    buffer_splitting: Choice<BufferSplitting>,
    /// Receive buffer, announced as a_rwnd.
    receive_buffer: Size,
    /// Send buffer: messages not yet sent and not yet acknowledged.
    send_buffer: Size,
    /// Largest message accepted for sending.
    max_message_size: Size,
    /// Outgoing streams asked for.
    outbound_streams: u16,
    /// Incoming streams allowed.
    inbound_streams: u16,
    /// Slow start threshold at the beginning; "off" is the peer's a_rwnd.
    initial_ssthresh: Switch<Size>,
    /// Congestion window at the beginning, in PMDCS; 0 is the formula of RFC 9260.
    initial_cwnd: u32,
    /// Least ssthresh after a loss and least cwnd of an idle path, in PMDCS.
    cwnd_floor: u32,
    /// Largest IP packet of a path, headers included.
    path_mtu: Size,
    /// Most paths of an association.
    max_paths: u8,
    /// Offer authenticated chunks (RFC 4895).
    authentication: bool,
    /// Chunk types that are taken only if they are authenticated, with commas between, or "none".
    authenticated_chunks: Choice<ChunkTypes>,
    /// Offer that addresses come and go; needs `authentication` (RFC 5061).
    dynamic_addresses: bool,
    /// They may do so unauthenticated, with a peer that has no authentication.
    unauthenticated_addresses: bool,
    /// Told to the peer in the handshake: what stands above, a number, or "off" (RFC 5061 4.2.6).
    adaptation_layer: Threshold,
    /// Offer stream reconfiguration (RFC 6525).
    stream_reconfiguration: bool,
    /// Look for each path's largest packet, up to `path_mtu` (RFC 8899).
    path_mtu_discovery: bool,
    /// Offer explicit congestion notification (RFC 4960 Appendix A).
    ecn: bool,
    /// Pair every local with every remote address.
    full_mesh: bool,
}

macro_rules! policies {
    ($( $(#[$doc:meta])* $name:ident, )*) => {
        /// `[policy]`: which answer stands behind each decision, by name.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Policy {
            $( $(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")]
               pub $name: Option<String>, )*
            /// What is different at the side that opens the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sender: Option<PolicyNames>,
            /// What is different at the side that accepts the association.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub receiver: Option<PolicyNames>,
        }

        /// Policies of one side; what is not given comes from `[policy]`.
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

            /// Every answer of a configuration.
            fn of(config: &Config) -> Self {
                Self { $( $name: Some(config.$name().name.to_owned()), )* }
            }
        }
    };
}

policies! {
    /// Where a retransmission goes.
    retransmission,
    /// When a chunk counts as lost.
    loss,
    /// How a congestion window grows and shrinks.
    congestion,
    /// When an acknowledgement may make a window grow.
    cwnd_update,
    /// Which path takes new data.
    scheduler,
    /// When a path is given up and taken back.
    failover,
    /// When and where an acknowledgement is sent.
    ack,
    /// What counts as a sample of the round-trip time.
    rtt_sampling,
    /// Which stream's message leaves next.
    stream_scheduler,
    /// When a path is probed.
    probing,
}

/// A side of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that opens it.
    Sender,
    /// The one that accepts it.
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

/// All that holds for one side: what the scenario says, and what its profile says where it does not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// Every parameter.
    pub transport: TransportParameters,
    /// The answer to every decision.
    pub policy: PolicyNames,
}

impl Effective {
    pub(super) fn new(config: &Config) -> Self {
        Self { transport: TransportParameters::of(config), policy: PolicyNames::of(config) }
    }
}

/// What `[transport]` and `[policy]` say at one place of a scenario: at its root, or of one association.
#[derive(Clone, Debug)]
pub(crate) struct Layer<'a> {
    /// The table that has the two.
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

    /// The key of a parameter or policy, if this layer says something of it.
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

/// The configuration of one side: each layer holds against those before it.
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
        // What nobody gives is at odds with what the last of them does.
        let key = known.unwrap_or_else(|| {
            let last = layers.iter().rev().find(|layer| layer.says_something());
            let at = last.map_or_else(Key::root, |layer| layer.at.clone());
            at.field(table).field(error.parameter)
        });
        Problem::new(key, format!("found {}; allowed: {}", error.value, error.allowed))
    })
}

/// How the packets of an association with these layers are made.
pub(crate) fn encapsulation(layers: &[Layer<'_>]) -> EncapsulationSpec {
    layers.iter().rev().find_map(|layer| layer.transport.encapsulation).unwrap_or_default()
}
