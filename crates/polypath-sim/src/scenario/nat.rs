//! `nat` of a `[[path]]` or a `[[link]]`: a network address translator.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::key::Key;
use crate::network::{LinkId, NatBehavior, NatPlan, NodeId};
use crate::units::Span;

/// A NAT for UDP at the sender's end of a path, or at the first end of a link (RFC 4787). What is
/// sent from there gets another address and another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NatSpec {
    /// A mapping ends when no packet has refreshed it for this long; "30 s" by default.
    pub timeout: Span,
    /// Packets to which peers share a mapping; "endpoint-independent" by default.
    pub mapping: NatBehavior,
    /// Peers whose packets a mapping lets pass; "endpoint-independent" by default.
    pub filtering: NatBehavior,
    /// Whether packets from outside refresh a mapping too; false by default.
    pub inbound_refresh: bool,
    /// External address; 192.0.2.1 for the first path or link, 192.0.2.2 for the second, ... by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

impl Default for NatSpec {
    fn default() -> Self {
        Self {
            timeout: Span::secs(30),
            mapping: NatBehavior::default(),
            filtering: NatBehavior::default(),
            inbound_refresh: false,
            address: None,
        }
    }
}

impl NatSpec {
    /// The NAT at the inner end of the `number`-th path or link.
    pub(super) fn plan(
        &self,
        (name, number): (&str, usize),
        inside: NodeId,
        links: [LinkId; 2],
        key: &Key,
    ) -> Result<NatPlan, Problem> {
        if self.timeout.0 == 0 {
            return Err(Problem::new(key.field("timeout"), "found 0 s; allowed: above 0 s"));
        }
        let address = match (self.address, u8::try_from(number + 1)) {
            (Some(address), _) => address,
            (None, Ok(last)) => IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)),
            (None, Err(_)) => return Err(Problem::new(key.field("address"), "missing")),
        };
        Ok(NatPlan {
            name: name.to_owned(),
            inside,
            links,
            addresses: vec![address],
            timeout: self.timeout.duration(),
            mapping: self.mapping,
            filtering: self.filtering,
            inbound_refresh: self.inbound_refresh,
        })
    }
}
