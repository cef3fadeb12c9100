//! `[[association]]`: the hosts of an association, its paths and its settings.

use serde::{Deserialize, Serialize};

use super::fault::PathRef;
use super::serialize::is_default;
use super::transport::{Policy, Transport};
use super::workload::Workload;

/// `[[association]]`: one of several associations. A scenario without any has one, from the first
/// host to the second, with `[workload]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssociationSpec {
    /// Name of the association; "association0", ... by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The host that opens it.
    pub from: String,
    /// The host that accepts it.
    pub to: String,
    /// SCTP port on both sides; by default the first from 5001 on that is free between the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The paths that it uses, the primary first; all by default. In a general graph, number n
    /// means the n-th address of both hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathRef>>,
    /// Workload of the association.
    pub workload: Workload,
    /// Overrides of `[transport]`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: Transport,
    /// Overrides of `[policy]`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: Policy,
}

impl AssociationSpec {
    /// An association from one host to another.
    pub fn new(from: impl Into<String>, to: impl Into<String>, workload: Workload) -> Self {
        Self { from: from.into(), to: to.into(), workload, ..Self::default() }
    }
}
