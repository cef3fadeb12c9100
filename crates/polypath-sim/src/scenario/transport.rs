//! `[transport]` and `[policy]`: every parameter of the protocol core by its name.
//!
//! The core's table of parameters ([`PARAMETERS`]) is the schema: `[transport]` has the constants,
//! `[policy]` the policies. Times, sizes, names and "off" are strings, counts are integers.

use std::fmt;
use std::sync::LazyLock;

use polypath_proto::{
    Config, ConfigBuilder, ConfigError, DEFAULT_PROFILE, Kind, Overrides, PARAMETERS, Parameter,
    Registry, Value,
};
use serde::de::{DeserializeSeed, Error, MapAccess, Unexpected, Visitor};
use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::Problem;
use super::key::Key;

/// `[transport]`: parameters of both sides, and of one side where they differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transport {
    /// The named set of constants and policies to start from; "rfc9260" by default.
    pub profile: Option<String>,
    /// SCTP over IP (default) or over UDP.
    pub encapsulation: Option<EncapsulationSpec>,
    /// Constants of both sides. Policies belong to [`Policy`].
    pub both: Overrides,
    /// Overrides for the side that opens the association.
    pub sender: Option<Overrides>,
    /// Overrides for the side that accepts the association.
    pub receiver: Option<Overrides>,
}

/// `[policy]`: the policy for each decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Policies of both sides. Constants belong to [`Transport`].
    pub both: Overrides,
    /// Overrides for the side that opens the association.
    pub sender: Option<Overrides>,
    /// Overrides for the side that accepts the association.
    pub receiver: Option<Overrides>,
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

impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(profile) = &self.profile {
            map.serialize_entry("profile", profile)?;
        }
        if let Some(encapsulation) = &self.encapsulation {
            map.serialize_entry("encapsulation", encapsulation)?;
        }
        serialize_sides(map, Table::Transport, [&self.sender, &self.receiver], &self.both)
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = serializer.serialize_map(None)?;
        serialize_sides(map, Table::Policy, [&self.sender, &self.receiver], &self.both)
    }
}

fn serialize_sides<M: SerializeMap>(
    mut map: M,
    table: Table,
    sides: [&Option<Overrides>; 2],
    both: &Overrides,
) -> Result<M::Ok, M::Error> {
    for (parameter, value) in table.given(both) {
        map.serialize_entry(parameter.name, &Written(parameter, value))?;
    }
    for (side, overrides) in [Side::Sender, Side::Receiver].into_iter().zip(sides) {
        if let Some(overrides) = overrides {
            map.serialize_entry(side.name(), &WrittenSide(table, overrides))?;
        }
    }
    map.end()
}

/// Parameters of one side, to serialize.
struct WrittenSide<'a>(Table, &'a Overrides);

impl Serialize for WrittenSide<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (parameter, value) in self.0.given(self.1) {
            map.serialize_entry(parameter.name, &Written(parameter, value))?;
        }
        map.end()
    }
}

/// The value of a parameter, to serialize.
struct Written(&'static Parameter, Value);

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.0.kind, &self.1) {
            (Kind::Count(_), Value::Number(number)) => serializer.serialize_u64(*number),
            (_, Value::Flag(flag)) => serializer.serialize_bool(*flag),
            (_, value) => serializer.serialize_str(&self.0.write(value)),
        }
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Entries { table: Table::Transport, keys: &TRANSPORT_KEYS }.deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Entries { table: Table::Policy, keys: &POLICY_KEYS };
        let Transport { both, sender, receiver, .. } = entries.deserialize(deserializer)?;
        Ok(Self { both, sender, receiver })
    }
}

/// One of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Transport,
    Policy,
}

impl Table {
    /// The table that has a parameter.
    const fn of(parameter: &Parameter) -> Self {
        if parameter.is_policy() { Self::Policy } else { Self::Transport }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Policy => "policy",
        }
    }

    fn parameters(self) -> impl Iterator<Item = &'static Parameter> {
        PARAMETERS.iter().filter(move |parameter| Self::of(parameter) == self)
    }

    /// The parameters of this table that `overrides` sets.
    fn given(self, overrides: &Overrides) -> impl Iterator<Item = (&'static Parameter, Value)> {
        self.parameters().filter_map(|parameter| Some((parameter, overrides.get(parameter)?)))
    }

    /// The names of the parameters, between the other keys of a table.
    fn keys(self, first: &[&'static str], last: &[&'static str]) -> Vec<&'static str> {
        let names = self.parameters().map(|parameter| parameter.name);
        first.iter().copied().chain(names).chain(last.iter().copied()).collect()
    }

    const fn side_keys(self) -> &'static LazyLock<Vec<&'static str>> {
        match self {
            Self::Transport => &TRANSPORT_SIDE_KEYS,
            Self::Policy => &POLICY_SIDE_KEYS,
        }
    }
}

const SIDES: [&str; 2] = ["sender", "receiver"];
static TRANSPORT_KEYS: LazyLock<Vec<&str>> =
    LazyLock::new(|| Table::Transport.keys(&["profile", "encapsulation"], &SIDES));
static TRANSPORT_SIDE_KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| Table::Transport.keys(&[], &[]));
static POLICY_KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| Table::Policy.keys(&[], &SIDES));
static POLICY_SIDE_KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| Table::Policy.keys(&[], &[]));

/// Reads a table with these keys, or that of one side, in which only `both` is set.
#[derive(Clone, Copy)]
struct Entries {
    table: Table,
    keys: &'static LazyLock<Vec<&'static str>>,
}

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = Transport;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Transport, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Transport;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Transport, M::Error> {
        let mut read = Transport::default();
        while let Some(key) = map.next_key::<String>()? {
            let keys: &'static [&'static str] = self.keys;
            if !keys.contains(&key.as_str()) {
                return Err(M::Error::unknown_field(&key, keys));
            }
            let side = Self { keys: self.table.side_keys(), ..self };
            match key.as_str() {
                "profile" => read.profile = Some(map.next_value()?),
                "encapsulation" => read.encapsulation = Some(map.next_value()?),
                "sender" => read.sender = Some(map.next_value_seed(side)?.both),
                "receiver" => read.receiver = Some(map.next_value_seed(side)?.both),
                name => {
                    // Every other key is the name of a parameter.
                    let Some(parameter) = Parameter::find(name) else { continue };
                    map.next_value_seed(Given { parameter, overrides: &mut read.both })?;
                }
            }
        }
        Ok(read)
    }
}

/// Reads the value of a parameter.
struct Given<'a> {
    parameter: &'static Parameter,
    overrides: &'a mut Overrides,
}

impl Given<'_> {
    fn set<E: Error>(self, text: &str) -> Result<(), E> {
        self.overrides.set(self.parameter, text).map_err(|error| E::custom(problem(&error)))
    }
}

impl<'de> DeserializeSeed<'de> for Given<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Given<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parameter.kind {
            Kind::Policy => f.write_str("the name of a policy"),
            // No other parameter depends on the registry.
            _ => f.write_str(&self.parameter.notation(&Registry::default())),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.parameter.kind {
            Kind::Flag | Kind::Count(_) if !(self.parameter.optional && text == "off") => {
                Err(E::invalid_type(Unexpected::Str(text), &self))
            }
            _ => self.set(text),
        }
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        match self.parameter.kind {
            Kind::Flag => self.set(&flag.to_string()),
            _ => Err(E::invalid_type(Unexpected::Bool(flag), &self)),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        match self.parameter.kind {
            Kind::Count(_) | Kind::Bytes(_) => self.set(&number.to_string()),
            _ => Err(E::invalid_type(Unexpected::Signed(number), &self)),
        }
    }
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
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// All parameters and policies of one side: those of the scenario and, where it sets none, those of
/// its profile. It serializes as `transport` and `policy` of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The configuration.
    pub config: Config,
}

impl Serialize for Effective {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut both = serializer.serialize_struct("Effective", 2)?;
        both.serialize_field("transport", &WrittenConfig(Table::Transport, &self.config))?;
        both.serialize_field("policy", &WrittenConfig(Table::Policy, &self.config))?;
        both.end()
    }
}

/// The parameters of one table, to serialize.
struct WrittenConfig<'a>(Table, &'a Config);

impl Serialize for WrittenConfig<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .parameters()
                .map(|parameter| (parameter.name, Written(parameter, parameter.value(self.1)))),
        )
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
    /// The overrides for one side, later ones first, with the table and whether they are of this
    /// side alone.
    fn overrides(&self, side: Side) -> impl Iterator<Item = (Table, bool, &Overrides)> {
        let (parameters, policies) = match side {
            Side::Sender => (&self.transport.sender, &self.policy.sender),
            Side::Receiver => (&self.transport.receiver, &self.policy.receiver),
        };
        let own = [(Table::Transport, parameters), (Table::Policy, policies)]
            .into_iter()
            .filter_map(|(table, overrides)| Some((table, true, overrides.as_ref()?)));
        let both = [
            (Table::Transport, false, &self.transport.both),
            (Table::Policy, false, &self.policy.both),
        ];
        own.chain(both)
    }

    fn apply(
        &self,
        side: Side,
        builder: ConfigBuilder,
        registry: &Registry,
    ) -> Result<ConfigBuilder, ConfigError> {
        let given: Vec<&Overrides> = self.overrides(side).map(|(.., given)| given).collect();
        let set = |builder: ConfigBuilder, given| builder.overrides(given, registry);
        given.into_iter().rev().try_fold(builder, set)
    }

    fn key(&self, table: Table, own: bool, side: Side, name: &str) -> Key {
        let key = self.at.field(table.name());
        let key = if own { key.field(side.name()) } else { key };
        key.field(name)
    }

    /// The key of a parameter, if this layer sets it.
    fn key_of(&self, parameter: &Parameter, side: Side) -> Option<Key> {
        let (table, own, _) =
            self.overrides(side).find(|(.., given)| given.get(parameter).is_some())?;
        Some(self.key(table, own, side, parameter.name))
    }

    /// The problem with a parameter in the other parameters' table, which a file cannot have.
    fn misplaced(&self, side: Side) -> Option<Problem> {
        self.overrides(side).find_map(|(table, own, given)| {
            let parameter = PARAMETERS
                .iter()
                .find(|one| Table::of(one) != table && given.get(one).is_some())?;
            let text = format!("belongs to [{}]", Table::of(parameter).name());
            Some(Problem::new(self.key(table, own, side, parameter.name), text))
        })
    }

    fn sets_any(&self) -> bool {
        *self.transport != Transport::default() || *self.policy != Policy::default()
    }
}

/// The configuration of one side; each layer overrides those before it.
pub(crate) fn config(
    layers: &[Layer<'_>],
    registry: &Registry,
    side: Side,
) -> Result<Config, Problem> {
    if let Some(problem) = layers.iter().find_map(|layer| layer.misplaced(side)) {
        return Err(problem);
    }
    let given =
        layers.iter().rev().find_map(|layer| Some((layer, layer.transport.profile.as_deref()?)));
    let profile = given.map_or(DEFAULT_PROFILE, |(_, name)| name);
    let config = registry.profile(profile).ok_or_else(|| {
        let at = given.map_or_else(Key::root, |(layer, _)| layer.at.clone());
        let known = registry.profiles().iter().map(|known| known.name);
        Problem::unknown(at.field("transport").field("profile"), "profile", profile, known)
    })?;
    let builder = layers
        .iter()
        .try_fold(config.to_builder(), |builder, layer| layer.apply(side, builder, registry));
    builder.and_then(ConfigBuilder::build).map_err(|error| {
        let parameter = Parameter::find(error.parameter);
        let known =
            parameter.and_then(|one| layers.iter().rev().find_map(|layer| layer.key_of(one, side)));
        // An error in a parameter that no layer sets comes from the last layer that sets any.
        let key = known.unwrap_or_else(|| {
            let last = layers.iter().rev().find(|layer| layer.sets_any());
            let at = last.map_or_else(Key::root, |layer| layer.at.clone());
            let table = parameter.map_or(Table::Transport, Table::of);
            at.field(table.name()).field(error.parameter)
        });
        Problem::new(key, problem(&error))
    })
}

/// The text of an error after its key.
fn problem(error: &ConfigError) -> String {
    let guess = error.suggestion.map(|name| format!("did you mean \"{name}\"? "));
    format!("found {}; {}allowed: {}", error.value, guess.unwrap_or_default(), error.allowed)
}

/// Encapsulation of the packets of an association with these layers.
pub(crate) fn encapsulation(layers: &[Layer<'_>]) -> EncapsulationSpec {
    layers.iter().rev().find_map(|layer| layer.transport.encapsulation).unwrap_or_default()
}
