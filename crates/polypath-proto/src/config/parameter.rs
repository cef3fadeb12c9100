//! The columns of the table of parameters, and values in text.

use std::time::Duration;

use super::{Config, Overrides, PARAMETERS, Registry};
use crate::auth::ChunkTypes;
use crate::constants::{
    BufferSplitting, BurstRule, ConfigError, Delivery, PathConfirmation, Procedures,
};
use crate::kind::{Kind, Value};
use crate::suggest::closest;

/// A parameter of [`Config`]: one row of [`PARAMETERS`].
///
/// ```
/// use polypath_proto::{Config, Parameter, Registry};
///
/// let (mut config, registry) = (Config::rfc9260(), Registry::standard());
/// let rto_min = Parameter::find("rto_min").unwrap();
/// assert_eq!(rto_min.get(&config), "1 s");
/// rto_min.set(&mut config, "200 ms", &registry).unwrap();
/// assert_eq!(config.rto_min().as_millis(), 200);
/// let error = rto_min.set(&mut config, "2 h", &registry).unwrap_err();
/// assert_eq!(error.to_string(), "rto_min is 2 h, but must be from 1 ns to 1 h");
/// ```
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name, which is that of its getter and of its setter.
    pub name: &'static str,
    /// Its type, unit and range.
    pub kind: Kind,
    /// Whether it can be switched off: its value is then an `Option`, and "off" is `None`.
    pub optional: bool,
    pub(super) doc: &'static str,
    pub(super) get: fn(&Config) -> Value,
    pub(super) set: fn(&mut Overrides, Value) -> Option<()>,
    pub(super) given: fn(&Overrides) -> Option<Value>,
}

impl Parameter {
    /// The parameter of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PARAMETERS.iter().find(|parameter| parameter.name == name)
    }

    /// Its value in a configuration, as [`set`](Self::set) reads it: "200 ms", "64 KiB", "off".
    pub fn get(&self, config: &Config) -> String {
        self.write(&(self.get)(config))
    }

    /// Sets it to the value that `text` denotes; `registry` has the policies. Bytes may be without
    /// a unit.
    ///
    /// # Errors
    /// `text` is not a value of this parameter, or it is out of range. Combinations of parameters
    /// are checked by [`ConfigBuilder::build`](super::ConfigBuilder::build) only.
    pub fn set(
        &self,
        config: &mut Config,
        text: &str,
        registry: &Registry,
    ) -> Result<(), ConfigError> {
        let mut overrides = Overrides::default();
        overrides.set(self, text)?;
        overrides.apply(config, registry)
    }

    /// Its value in a configuration.
    pub fn value(&self, config: &Config) -> Value {
        (self.get)(config)
    }

    /// Its value in the default profile, [`Config::modern`].
    pub fn default(&self) -> String {
        self.get(&Config::modern())
    }

    /// Its allowed values: "from 0 ns to 24 h, or off". `registry` has the policies.
    pub fn allowed(&self, registry: &Registry) -> String {
        match &self.kind {
            Kind::Policy => {
                let entries = registry.entries(self.name);
                entries.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
            }
            kind => self.off_or(kind.allowed()),
        }
    }

    /// Its allowed values and, where they have units, how to write them.
    pub fn notation(&self, registry: &Registry) -> String {
        match self.kind.unit() {
            Some(unit) => format!("{}: {unit}", self.allowed(registry)),
            None => self.allowed(registry),
        }
    }

    /// Its documentation in one paragraph: meaning and sources.
    pub fn documentation(&self) -> String {
        let mut text = self.doc.split_whitespace().collect::<Vec<_>>().join(" ");
        // A link of rustdoc becomes its text.
        while let Some(at) = text.find("](") {
            let end = text[at..].find(')').map_or(text.len(), |length| at + length + 1);
            text.replace_range(at..end, "");
            if let Some(open) = text[..at].rfind('[') {
                text.remove(open);
            }
        }
        text.replace("`None`", "`off`")
    }

    /// The first sentence of its documentation.
    pub fn summary(&self) -> String {
        let text = self.documentation();
        let end = text.find(". ").map_or(text.len(), |at| at + 1);
        text[..end].to_owned()
    }

    /// Whether it selects a policy.
    pub const fn is_policy(&self) -> bool {
        matches!(self.kind, Kind::Policy)
    }

    pub(super) fn read(&self, text: &str) -> Result<Value, ConfigError> {
        let text = text.trim();
        if self.optional && text == "off" {
            return Ok(Value::Off);
        }
        let value = self.kind.read(text).ok_or_else(|| self.refuse(text))?;
        self.check_range(&value)?;
        Ok(value)
    }

    /// A value in text, as [`set`](Self::set) reads it.
    pub fn write(&self, value: &Value) -> String {
        self.kind.write(value)
    }

    /// Checks that its value in a configuration is in range.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        self.check_range(&(self.get)(config))
    }

    fn check_range(&self, value: &Value) -> Result<(), ConfigError> {
        if self.kind.contains(value) {
            return Ok(());
        }
        Err(ConfigError::new(self.name, self.write(value), self.off_or(self.kind.allowed())))
    }

    /// The allowed values, and "off" if it is one of them.
    fn off_or(&self, allowed: String) -> String {
        if self.optional { allowed + ", or off" } else { allowed }
    }

    /// The error for a text that is no value of this parameter.
    pub(super) fn refuse(&self, text: &str) -> ConfigError {
        let number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let value = if number { text.to_owned() } else { format!("{text:?}") };
        let suggestion = closest(text, self.kind.names());
        let allowed = self.off_or(self.kind.allowed());
        let allowed = match self.kind.unit() {
            Some(unit) => format!("{allowed}: {unit}"),
            None => allowed,
        };
        ConfigError { suggestion, ..ConfigError::new(self.name, value, allowed) }
    }
}

/// A Rust type of parameters.
pub(super) trait Setting: Sized {
    /// Whether "off" is a value.
    const OPTIONAL: bool = false;
    /// Converts to the type of all parameters.
    fn to_value(self) -> Value;
    /// Converts back; `None` if the value has another type.
    fn from_value(value: Value) -> Option<Self>;
}

impl Setting for Duration {
    fn to_value(self) -> Value {
        Value::Time(self)
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Time(time) => Some(time),
            _ => None,
        }
    }
}

impl Setting for bool {
    fn to_value(self) -> Value {
        Value::Flag(self)
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Setting for $ty {
            fn to_value(self) -> Value {
                Value::Number(self.into())
            }
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::Number(number) => number.try_into().ok(),
                    _ => None,
                }
            }
        }
    )*};
}

numbers!(u8, u16, u32);

macro_rules! names {
    ($($ty:ty),*) => {$(
        impl Setting for $ty {
            fn to_value(self) -> Value {
                Value::Name(self.to_string())
            }
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::Name(name) => name.parse().ok(),
                    _ => None,
                }
            }
        }
    )*};
}

names!(ChunkTypes, BufferSplitting, BurstRule, Delivery, PathConfirmation, Procedures);

impl<T: Setting> Setting for Option<T> {
    const OPTIONAL: bool = true;
    fn to_value(self) -> Value {
        self.map_or(Value::Off, T::to_value)
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Off => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str) -> &'static Parameter {
        Parameter::find(name).unwrap()
    }

    fn refused(name: &str, text: &str) -> String {
        parameter(name)
            .set(&mut Config::rfc9260(), text, &Registry::standard())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_value_of_every_profile_reads_back() {
        let registry = Registry::standard();
        for profile in registry.profiles() {
            let config = (profile.make)();
            let mut copy = Config::rfc9260();
            for parameter in PARAMETERS {
                let text = parameter.get(&config);
                parameter.set(&mut copy, &text, &registry).unwrap();
                assert_eq!(parameter.get(&copy), text, "{} {}", profile.name, parameter.name);
            }
            assert_eq!(copy, config);
            copy.to_builder().build().unwrap();
        }
    }

    #[test]
    fn every_parameter_is_documented_and_has_its_limits() {
        let registry = Registry::standard();
        for parameter in PARAMETERS {
            let (name, summary) = (parameter.name, parameter.summary());
            assert!(summary.ends_with('.') && summary.len() > 20, "{name}: {summary}");
            assert!(!parameter.documentation().contains("]("), "{name}");
            let mut config = Config::rfc9260();
            let limits = match &parameter.kind {
                Kind::Time(range) => {
                    [*range.start(), *range.end()].map(|time| parameter.write(&Value::Time(time)))
                }
                Kind::Bytes(range) | Kind::Count(range) => {
                    [*range.start(), *range.end()].map(|n| parameter.write(&Value::Number(n)))
                }
                _ => [parameter.default(), parameter.get(&config)],
            };
            for limit in limits {
                parameter.set(&mut config, &limit, &registry).unwrap();
                assert_eq!(parameter.get(&config), limit, "{name}");
            }
            if parameter.optional {
                parameter.set(&mut config, "off", &registry).unwrap();
                assert_eq!(parameter.get(&config), "off", "{name}");
            } else {
                assert!(
                    parameter.set(&mut config, "off", &registry).is_err()
                        || name == "path_confirmation"
                        || name == "buffer_splitting",
                    "{name}"
                );
            }
        }
        assert!(Parameter::find("rto").is_none());
    }

    #[test]
    fn errors_state_the_parameter_the_value_and_the_range() {
        let table = [
            (
                refused("rto_min", "fast"),
                "rto_min is \"fast\", but must be from 1 ns to 1 h: a number and ns, us, ms, s, \
                 min or h, such as \"45 ms\"",
            ),
            (
                refused("sack_delay", "501 ms"),
                "sack_delay is 501 ms, but must be from 0 ns to 500 ms",
            ),
            (
                refused("receive_buffer", "1 KiB"),
                "receive_buffer is 1 KiB, but must be from 1500 B to 1 GiB",
            ),
            (refused("max_paths", "300"), "max_paths is 300, but must be from 1 to 64"),
            (refused("max_paths", "-1"), "max_paths is -1, but must be from 1 to 64"),
            (refused("ecn", "yes"), "ecn is \"yes\", but must be true or false"),
            (
                refused("heartbeat_interval", "2000 min"),
                "heartbeat_interval is 2000 min, but must be from 0 ns to 24 h, or off",
            ),
            (
                refused("burst_rule", "flight_size"),
                "burst_rule is \"flight_size\", but must be flight-size, ack-clocked, \
                 after-retransmission, packet-count; did you mean \"flight-size\"?",
            ),
            (
                refused("scheduler", "primry"),
                "scheduler is \"primry\", but must be primary, concurrent, delay-aware, bottleneck-aware, \
                 earliest; did you mean \"primary\"?",
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
        let (mut config, registry) = (Config::rfc9260(), Registry::standard());
        parameter("receive_buffer").set(&mut config, "65536", &registry).unwrap();
        assert_eq!(config.receive_buffer(), 65_536);
        parameter("authenticated_chunks").set(&mut config, "sack, data", &registry).unwrap();
        assert_eq!(parameter("authenticated_chunks").get(&config), "data,sack");
    }
}
