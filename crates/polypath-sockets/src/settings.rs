//! Options of `polypath run`, which arrive in the environment, and what a program configures.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Mutex;

use polypath::proto::{PARAMETERS, Registry};
use polypath::{Config, Encapsulation, UDP_PORT};

use crate::link::lock;

/// How associations reach their peers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Send over IP protocol 132 without encapsulation.
    pub(crate) raw: bool,
    /// UDP port of sockets that listen.
    pub(crate) port: u16,
    /// UDP port of peers to connect to.
    pub(crate) peer_port: u16,
    /// Local addresses instead of the wildcard address.
    pub(crate) bind: Vec<IpAddr>,
    /// All processes have one UDP port and one SCTP port space.
    pub(crate) shared: bool,
    /// Encrypt the packets (RFC 8261).
    pub(crate) encrypt: bool,
    /// Constants and policies.
    pub(crate) config: Config,
    /// Print the unsupported requests when the program ends.
    pub(crate) report: bool,
}

/// Why a setting was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigureError {
    /// The process has opened an SCTP socket.
    TooLate,
    /// The key or the value is not allowed.
    Invalid(String),
}

impl fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate => f.write_str("the process has opened an SCTP socket already"),
            Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ConfigureError {}

/// What the program has configured, by the names of the environment. An empty value hides that of
/// the environment.
static CONFIGURED: Mutex<BTreeMap<&str, String>> = Mutex::new(BTreeMap::new());

/// Sets an option or a constant for the engine that starts next.
pub(crate) fn set(key: &str, value: &str) -> Result<(), ConfigureError> {
    let mut configured = lock(&CONFIGURED);
    let new = configured_with(&configured, environment, key, value)?;
    *configured = new;
    Ok(())
}

/// The settings with one more, checked.
fn configured_with(
    old: &BTreeMap<&'static str, String>,
    environment: impl Fn(&str) -> Option<String>,
    key: &str,
    value: &str,
) -> Result<BTreeMap<&'static str, String>, ConfigureError> {
    let is_port = || value.parse::<u16>().is_ok_and(|port| port != 0);
    let are_addresses = || value.split(',').all(|text| text.parse::<IpAddr>().is_ok());
    let registry = Registry::standard();
    let names = || registry.profiles().iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    let (name, allowed, valid) = match key {
        "port" => ("PORT", "a port from 1 to 65535".to_owned(), is_port()),
        "peer-port" => ("PEER_PORT", "a port from 1 to 65535".to_owned(), is_port()),
        "raw" => ("RAW", "true or false".to_owned(), ["true", "false"].contains(&value)),
        "encrypt" => ("ENCRYPT", "true or false".to_owned(), ["true", "false"].contains(&value)),
        "bind" => ("BIND", "IP addresses, separated by commas".to_owned(), are_addresses()),
        "profile" => ("PROFILE", names(), registry.profile(value).is_some()),
        _ => {
            let Some(parameter) = PARAMETERS.iter().find(|one| one.name == key) else {
                return Err(ConfigureError::Invalid(format!("there is no setting {key:?}")));
            };
            let set = parameter.set(&mut Config::default(), value, &registry);
            set.map_err(|error| ConfigureError::Invalid(error.to_string()))?;
            ("CONFIG", String::new(), true)
        }
    };
    if !valid {
        let text = format!("{value:?} is not a value of {key}: {allowed}");
        return Err(ConfigureError::Invalid(text));
    }
    let mut new = old.clone();
    let text = match (name, value) {
        // After the environment's, so that it prevails.
        ("CONFIG", _) => {
            let before = new.remove(name).or_else(|| environment(name)).unwrap_or_default();
            format!("{before}\n{key}={value}")
        }
        (_, "false") => String::new(),
        _ => value.to_owned(),
    };
    new.insert(name, text);
    let settings = Settings::read(overlaid(&new, environment));
    if settings.raw && settings.encrypt {
        return Err(ConfigureError::Invalid("raw and encrypt exclude each other".to_owned()));
    }
    let built = settings.config.to_builder().build();
    built.map_err(|error| ConfigureError::Invalid(error.to_string()))?;
    Ok(new)
}

fn environment(name: &str) -> Option<String> {
    std::env::var(format!("POLYPATH_RUN_{name}")).ok()
}

/// What is configured, in front of the environment.
fn overlaid(
    configured: &BTreeMap<&'static str, String>,
    environment: impl Fn(&str) -> Option<String>,
) -> impl Fn(&str) -> Option<String> {
    move |name| match configured.get(name) {
        Some(value) => Some(value.clone()).filter(|value| !value.is_empty()),
        None => environment(name),
    }
}

impl Settings {
    /// The settings of the environment and what the program has configured.
    pub(crate) fn current() -> Self {
        Self::read(overlaid(&lock(&CONFIGURED), environment))
    }

    /// `polypath run` and `configure` have checked the values; invalid ones that others have set in
    /// the environment are ignored.
    fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let registry = Registry::standard();
        let profile = get("PROFILE").and_then(|name| registry.profile(&name));
        let mut config = profile.unwrap_or_default();
        for line in get("CONFIG").unwrap_or_default().lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if let Some(parameter) = PARAMETERS.iter().find(|one| one.name == key) {
                let _ = parameter.set(&mut config, value, &registry);
            }
        }
        let (raw, encrypt) = (get("RAW").is_some(), get("ENCRYPT").is_some());
        let number = |name: &str| get(name).and_then(|text| text.parse().ok());
        Self {
            raw,
            shared: get("SHARED").is_some() && !raw && !encrypt,
            port: number("PORT").unwrap_or(UDP_PORT),
            peer_port: number("PEER_PORT").unwrap_or(UDP_PORT),
            bind: get("BIND")
                .unwrap_or_default()
                .split(',')
                .filter_map(|text| text.parse().ok())
                .collect(),
            encrypt,
            config,
            report: get("REPORT").is_some(),
        }
    }

    pub(crate) const fn encapsulation(&self, listens: bool) -> Encapsulation {
        match (self.raw, listens || self.shared) {
            (true, _) => Encapsulation::RawIp,
            (false, true) => Encapsulation::Udp { port: self.port },
            (false, false) => Encapsulation::Udp { port: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_from_the_environment() {
        let settings = Settings::read(|name| {
            let value = match name {
                "PORT" => "9000",
                "BIND" => "10.1.0.1,fd00::1",
                "PROFILE" => "rfc9260",
                "CONFIG" => "path_max_retrans=2\nrto_min=100ms",
                _ => return None,
            };
            Some(value.to_owned())
        });
        assert_eq!((settings.port, settings.peer_port), (9000, 9899));
        assert_eq!(settings.bind.len(), 2);
        assert_eq!(settings.config.path_max_retrans(), 2);
        assert_eq!(settings.config.rto_min(), std::time::Duration::from_millis(100));
        assert_eq!(settings.config.loss(), Config::rfc9260().loss());
        assert_eq!(settings.encapsulation(false), Encapsulation::Udp { port: 0 });
    }

    /// Configures these in order.
    fn configured(pairs: &[(&str, &str)]) -> Result<Settings, ConfigureError> {
        let environment = |name: &str| match name {
            "PORT" => Some("9000".to_owned()),
            "CONFIG" => Some("path_max_retrans=2\nrto_min=100ms".to_owned()),
            "ENCRYPT" => Some("1".to_owned()),
            _ => None,
        };
        let mut all = BTreeMap::new();
        for (key, value) in pairs {
            all = configured_with(&all, environment, key, value)?;
        }
        Ok(Settings::read(overlaid(&all, environment)))
    }

    #[test]
    fn the_program_prevails_over_the_environment() {
        let settings = configured(&[
            ("peer-port", "9001"),
            ("encrypt", "false"),
            ("raw", "true"),
            ("bind", "10.1.0.1,fd00::1"),
            ("rto_min", "150ms"),
            ("profile", "rfc9260"),
        ])
        .unwrap();
        assert_eq!((settings.port, settings.peer_port), (9000, 9001));
        assert!(settings.raw && !settings.encrypt);
        assert_eq!(settings.bind.len(), 2);
        assert_eq!(settings.config.path_max_retrans(), 2);
        assert_eq!(settings.config.rto_min(), std::time::Duration::from_millis(150));
        assert_eq!(settings.config.loss(), Config::rfc9260().loss());
    }

    #[test]
    fn what_is_not_allowed_is_explained() {
        for (key, value, part) in [
            ("prot", "1", "there is no setting \"prot\""),
            ("port", "0", "\"0\" is not a value of port: a port from 1 to 65535"),
            ("bind", "", "IP addresses"),
            ("encrypt", "yes", "true or false"),
            ("profile", "fast", "rfc9260"),
            ("rto_min", "soon", "rto_min"),
            ("rto_min", "10min", "rto_m"),
            ("raw", "true", "exclude each other"),
        ] {
            let error = configured(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(part), "{key}={value}: {error}");
        }
    }
}
