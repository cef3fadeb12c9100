//! Options of `polypath run`, which arrive in the environment.

use std::net::IpAddr;

use polypath::proto::{PARAMETERS, Registry};
use polypath::{Config, Encapsulation, UDP_PORT};

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
    /// Encrypt the packets (RFC 8261).
    pub(crate) encrypt: bool,
    /// Constants and policies.
    pub(crate) config: Config,
    /// Print the unsupported requests when the program ends.
    pub(crate) report: bool,
}

impl Settings {
    pub(crate) fn from_environment() -> Self {
        Self::read(|name| std::env::var(format!("POLYPATH_RUN_{name}")).ok())
    }

    /// `polypath run` has checked the values; invalid ones that others have set are ignored.
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
        let number = |name: &str| get(name).and_then(|text| text.parse().ok());
        Self {
            raw: get("RAW").is_some(),
            port: number("PORT").unwrap_or(UDP_PORT),
            peer_port: number("PEER_PORT").unwrap_or(UDP_PORT),
            bind: get("BIND")
                .unwrap_or_default()
                .split(',')
                .filter_map(|text| text.parse().ok())
                .collect(),
            encrypt: get("ENCRYPT").is_some(),
            config,
            report: get("REPORT").is_some(),
        }
    }

    pub(crate) const fn encapsulation(&self, listens: bool) -> Encapsulation {
        match (self.raw, listens) {
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
}
