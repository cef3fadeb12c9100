//! Options of endpoints, as Python passes them.

use std::net::{IpAddr, SocketAddr};

use polypath::proto::{DEFAULT_PROFILE, PARAMETERS};
use polypath::{
    Config, Encapsulation, Encryption, EndpointOptions, Identity as Key, KnownFingerprint, Trust,
};
use polypath_apps::consent::{Phrase, Service};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::net::identity::Identity;
use crate::registry;

/// Consent by a shared secret.
pub(super) const SERVICE: Service = Service { name: "aio", version: 1, oldest: 1 };

/// A `ValueError`.
pub(super) fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A profile, and constants and policies that differ from it.
pub(super) fn config(profile: Option<&str>, settings: &[(String, String)]) -> PyResult<Config> {
    let registry = registry();
    let name = profile.unwrap_or(DEFAULT_PROFILE);
    let mut config = registry.profile(name).ok_or_else(|| {
        let known: Vec<&str> = registry.profiles().iter().map(|one| one.name).collect();
        wrong(format!("there is no profile {name:?}; allowed: {}", known.join(", ")))
    })?;
    for (key, value) in settings {
        let parameter = PARAMETERS
            .iter()
            .find(|one| one.name == key)
            .ok_or_else(|| wrong(format!("there is no constant or policy {key:?}")))?;
        parameter.set(&mut config, value, registry).map_err(wrong)?;
    }
    config.to_builder().build().map_err(wrong)
}

pub(super) fn secret(text: Option<&str>) -> PyResult<Option<Phrase>> {
    text.map(|text| text.parse().map_err(|error| wrong(format!("secret: {error}")))).transpose()
}

pub(super) fn fingerprints(texts: &[String]) -> PyResult<Vec<KnownFingerprint>> {
    texts
        .iter()
        .map(|text| text.parse().map_err(|error| wrong(format!("{text:?}: {error}"))))
        .collect()
}

/// An IP address.
pub(super) fn address(text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| wrong(format!("{text:?} is not an IP address")))
}

/// IP addresses and UDP ports.
pub(super) fn remotes(remotes: Vec<(String, u16)>) -> PyResult<Vec<SocketAddr>> {
    remotes.iter().map(|(host, port)| Ok((address(host)?, *port).into())).collect()
}

/// Options of an endpoint, but for its configuration.
#[derive(Debug)]
pub(super) struct Basics<'a> {
    pub(super) addresses: Vec<String>,
    pub(super) port: u16,
    pub(super) udp_port: u16,
    pub(super) listen: bool,
    pub(super) encrypt: bool,
    pub(super) identity: Option<&'a Identity>,
    pub(super) trust: Option<Vec<String>>,
}

impl Basics<'_> {
    pub(super) fn options(self, config: Config, secret: bool) -> PyResult<EndpointOptions> {
        if !self.encrypt && (self.identity.is_some() || self.trust.is_some()) {
            return Err(wrong("identity and trust need encryption"));
        }
        let mut options = if self.encrypt {
            let identity: Option<Key> = self.identity.map(|identity| identity.inner.clone());
            let trust = match &self.trust {
                // A peer with another certificate may still prove the secret.
                Some(known) if !(secret && self.listen) => Trust::Known(fingerprints(known)?),
                _ => Trust::Anyone,
            };
            let encryption = Encryption { identity, trust, ..Encryption::default() };
            EndpointOptions { encryption: Some(encryption), ..EndpointOptions::default() }
        } else {
            EndpointOptions::plain()
        };
        if !self.addresses.is_empty() {
            options.addresses =
                self.addresses.iter().map(|text| address(text)).collect::<PyResult<_>>()?;
        }
        options.port = self.port;
        options.encapsulation = Encapsulation::Udp { port: self.udp_port };
        options.listen = self.listen;
        options.config = config;
        Ok(options)
    }
}
