//! Addresses of a peer on the command line: `ADDR[:UDPPORT][=LOCAL]`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::failure::{Failure, system_text};

/// One address of the peer, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerAddress {
    /// A name or an IP address.
    host: String,
    /// UDP port, if not the default one.
    udp_port: Option<u16>,
    /// Local address to reach it from.
    local: Option<IpAddr>,
}

impl FromStr for PeerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (remote, local) = match text.split_once('=') {
            Some((remote, local)) => (remote, Some(local)),
            None => (text, None),
        };
        let local = local
            .map(|local| local.parse().map_err(|_| format!("{local:?} is not an IP address")))
            .transpose()?;
        let (host, port) = split_port(remote);
        let udp_port = port
            .map(|port| match port.parse() {
                Ok(port) if port != 0 => Ok(port),
                _ => Err(format!("{port:?} is not a UDP port (1 to 65535)")),
            })
            .transpose()?;
        if host.is_empty() {
            return Err("an address is missing".to_owned());
        }
        Ok(Self { host: host.to_owned(), udp_port, local })
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)
    }
}

/// Splits `HOST`, `HOST:PORT`, `IPV6`, `[IPV6]` or `[IPV6]:PORT`.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

impl PeerAddress {
    /// UDP port, if one was written.
    pub(crate) const fn port(&self) -> Option<u16> {
        self.udp_port
    }

    pub(crate) const fn local(&self) -> Option<IpAddr> {
        self.local
    }

    /// Resolves the name and returns the first address that `fits` and is of the family of `local`,
    /// if that is given.
    pub(crate) async fn resolve(
        &self,
        udp_port: u16,
        fits: impl Fn(IpAddr) -> bool,
    ) -> Result<SocketAddr, Failure> {
        let port = self.udp_port.unwrap_or(udp_port);
        let same_family =
            |address: IpAddr| self.local.is_none_or(|local| local.is_ipv4() == address.is_ipv4());
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return if same_family(address) {
                Ok(SocketAddr::new(address, port))
            } else {
                Err(Failure::usage(format!("{address} cannot be reached from {:?}", self.local)))
            };
        }
        let found = tokio::net::lookup_host((self.host.as_str(), port)).await.map_err(|error| {
            let text = system_text(&error);
            // The beginning is the same for every error.
            let reason = text.rsplit(": ").next().unwrap_or(&text).to_lowercase();
            Failure::new(format!("cannot find {}: {reason}", self.host))
                .hint("is the name spelt correctly, and does name resolution work here?")
        })?;
        let found: Vec<SocketAddr> = found.collect();
        let best = found.iter().find(|address| same_family(address.ip()) && fits(address.ip()));
        best.copied().ok_or_else(|| {
            Failure::new(format!("{} has no address of a family that this host can use", self.host))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, Option<u16>, Option<IpAddr>) {
        let PeerAddress { host, udp_port, local } = text.parse().unwrap();
        (host, udp_port, local)
    }

    #[test]
    fn all_forms() {
        assert_eq!(parse("example.org"), ("example.org".into(), None, None));
        assert_eq!(parse("example.org:7"), ("example.org".into(), Some(7), None));
        assert_eq!(parse("10.0.0.1:7"), ("10.0.0.1".into(), Some(7), None));
        assert_eq!(parse("::1"), ("::1".into(), None, None));
        assert_eq!(parse("[::1]:7"), ("::1".into(), Some(7), None));
        assert_eq!(
            parse("10.0.0.2=10.0.0.1"),
            ("10.0.0.2".into(), None, Some("10.0.0.1".parse().unwrap()))
        );
        assert_eq!(parse("[::1]:7=::2"), ("::1".into(), Some(7), Some("::2".parse().unwrap())));
    }

    #[test]
    fn wrong_forms_say_what_is_wrong() {
        let wrong = |text: &str| text.parse::<PeerAddress>().unwrap_err();
        assert_eq!(wrong("host:0"), "\"0\" is not a UDP port (1 to 65535)");
        assert_eq!(wrong("host:x"), "\"x\" is not a UDP port (1 to 65535)");
        assert_eq!(wrong("host=there"), "\"there\" is not an IP address");
        assert_eq!(wrong(":7"), "an address is missing");
    }
}
