//! Rules of a server: which clients may reach which targets.

use std::net::IpAddr;
use std::str::FromStr;

use polypath::{Fingerprint, KnownFingerprint};

use crate::forward::message::Target;

/// Allows a client to reach targets: `[FINGERPRINT@]HOST:PORTS`.
///
/// `HOST` is a name, an address, a network such as `10.0.0.0/8`, or `*`; `PORTS` is a port, a range
/// such as `8000-8099`, or `*`. A name is compared with the requested one, addresses and networks
/// with what the request resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    client: Option<KnownFingerprint>,
    hosts: Hosts,
    ports: (u16, u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    Name(String),
    Network(IpAddr, u8),
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (client, rest) = match text.split_once('@') {
            Some((client, rest)) => {
                (Some(client.parse::<KnownFingerprint>().map_err(|error| error.to_string())?), rest)
            }
            None => (None, text),
        };
        let (host, ports) = rest
            .rsplit_once(':')
            .ok_or("it has to be [FINGERPRINT@]HOST:PORT, such as localhost:22 or 10.0.0.0/8:*")?;
        let port = |text: &str| {
            text.parse::<u16>().map_err(|_| format!("{text:?} is not a port, a range or *"))
        };
        let ports = match ports.split_once('-') {
            _ if ports == "*" => (0, u16::MAX),
            Some((first, last)) => (port(first)?, port(last)?),
            None => (port(ports)?, port(ports)?),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Ok(Self { client, hosts: host.parse()?, ports })
    }
}

impl FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::All);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        match (address.parse::<IpAddr>(), bits) {
            (Ok(address), bits) => {
                let most = if address.is_ipv4() { 32 } else { 128 };
                let bits = bits.map_or(Ok(most), |bits| {
                    let wrong = || format!("{bits:?} is not a number of bits up to {most}");
                    bits.parse::<u8>().ok().filter(|bits| *bits <= most).ok_or_else(wrong)
                })?;
                Ok(Self::Network(address, bits))
            }
            (Err(_), None) if !text.is_empty() => Ok(Self::Name(text.to_lowercase())),
            _ => Err(format!("{text:?} is not a host, a network or *")),
        }
    }
}

impl Rule {
    /// Whether the rule allows a client with this certificate to reach `address`, which is one of
    /// the addresses of the requested target.
    pub fn allows(&self, client: Option<Fingerprint>, target: &Target, address: IpAddr) -> bool {
        self.concerns(client, target)
            && match &self.hosts {
                Hosts::All | Hosts::Name(_) => true,
                Hosts::Network(network, bits) => is_in(address, *network, *bits),
            }
    }

    /// Whether the rule can allow the target, depending on its addresses. Names that no rule
    /// concerns are not resolved: a client learns nothing about them.
    pub fn concerns(&self, client: Option<Fingerprint>, target: &Target) -> bool {
        let is_client = match &self.client {
            Some(known) => client.is_some_and(|client| known.matches(&client)),
            None => true,
        };
        let is_host = match &self.hosts {
            Hosts::All | Hosts::Network(..) => true,
            Hosts::Name(name) => target.host.eq_ignore_ascii_case(name),
        };
        is_client && is_host && (self.ports.0..=self.ports.1).contains(&target.port)
    }
}

/// Whether an address is in a network.
fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let shift = |most: u32| most.saturating_sub(u32::from(bits));
    match (address.to_canonical(), network.to_canonical()) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            (address.to_bits() ^ network.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            (address.to_bits() ^ network.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rule: &str, client: &[u8], host: &str, port: u16, address: &str) -> bool {
        let rule: Rule = rule.parse().unwrap();
        let target = Target { host: host.into(), port };
        rule.allows(Some(Fingerprint::of(client)), &target, address.parse().unwrap())
    }

    #[test]
    fn hosts_and_ports_are_compared() {
        for (rule, host, port, address, expected) in [
            ("localhost:22", "localhost", 22, "127.0.0.1", true),
            ("localhost:22", "LOCALHOST", 22, "::1", true),
            ("localhost:22", "localhost", 23, "127.0.0.1", false),
            // A name that resolves to the same address is another name.
            ("localhost:22", "other", 22, "127.0.0.1", false),
            ("127.0.0.1:22", "localhost", 22, "127.0.0.1", true),
            ("10.0.0.0/8:*", "server", 443, "10.200.3.4", true),
            ("10.0.0.0/8:*", "server", 443, "11.0.0.1", false),
            ("10.0.0.0/8:*", "server", 443, "::ffff:10.1.1.1", true),
            ("0.0.0.0/0:*", "server", 443, "11.0.0.1", true),
            ("0.0.0.0/0:*", "server", 443, "fd00::1", false),
            ("[fd00::]/8:80", "server", 80, "fd12::1", false),
            ("fd00::/8:80", "server", 80, "fd12::1", true),
            ("*:8000-8099", "any", 8050, "192.0.2.1", true),
            ("*:8000-8099", "any", 8100, "192.0.2.1", false),
        ] {
            if rule.starts_with("[fd00::]/") {
                assert!(rule.parse::<Rule>().is_err());
                continue;
            }
            assert_eq!(
                allows(rule, b"a", host, port, address),
                expected,
                "{rule} {host} {address}"
            );
        }
    }

    #[test]
    fn only_names_that_a_rule_may_allow_are_resolved() {
        let concerns = |rule: &str, host: &str, port| {
            let rule: Rule = rule.parse().unwrap();
            rule.concerns(None, &Target { host: host.into(), port })
        };
        assert!(concerns("localhost:22", "localhost", 22) && concerns("10.0.0.0/8:22", "any", 22));
        assert!(!concerns("localhost:22", "other", 22) && !concerns("10.0.0.0/8:22", "any", 23));
    }

    #[test]
    fn a_rule_may_be_for_one_client() {
        let rule = format!("{}@*:*", Fingerprint::of(b"a").short());
        assert!(allows(&rule, b"a", "x", 1, "192.0.2.1"));
        assert!(!allows(&rule, b"b", "x", 1, "192.0.2.1"));
        let rule: Rule = rule.parse().unwrap();
        let target = Target { host: "x".into(), port: 1 };
        assert!(!rule.allows(None, &target, "192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn wrong_rules_are_rejected() {
        for text in ["", "host", "host:", "host:x", ":22", "10.0.0.0/33:1", "x@host:1", "a/8:1"] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
