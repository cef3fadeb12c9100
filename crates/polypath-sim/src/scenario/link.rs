//! `[[path]]`, `[[node]]` and `[[link]]`: the network.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::cross_traffic::CrossTraffic;
use super::nat::NatSpec;
use crate::link::{Codel, LinkConfig, LossModel, Middlebox, Policer, RateTrace, Red, Reordering};
use crate::units::{Probability, QueueLimit, Rate, Size, Span};

/// Declares a struct with the parameters of a link: for paths, for links, and for the overrides of
/// one direction.
macro_rules! with_link_parameters {
    ($(#[$doc:meta])* $name:ident { $( $(#[$field_doc:meta])* $field:ident: $ty:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $ty, )*
            /// Rate of whole packets, IP headers included; without it, transmission takes no time.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rate: Option<Rate>,
            /// Recorded milliseconds at which up to 1504 bytes may be sent, instead of a rate; in a
            /// file, the name of a file with one in each line.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace: Option<RateTrace>,
            /// One-way propagation delay; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delay: Option<Span>,
            /// Limit of the transmission queue; "50 packets" by default, "10240 packets" with
            /// `codel`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub queue: Option<QueueLimit>,
            /// Largest packet, IP header included; without it there is no limit.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub mtu: Option<Size>,
            /// Queue length in packets from which ECN-capable packets are marked; never by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub mark_at: Option<u32>,
            /// Random early detection before the queue; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub red: Option<Red>,
            /// CoDel or FQ-CoDel in place of a drop-tail queue; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub codel: Option<Codel>,
            /// Token bucket that drops packets beyond its rate; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub policer: Option<Policer>,
            /// Middlebox in front of the link; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub middlebox: Option<Middlebox>,
            /// Loss model; no loss by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub loss: Option<LossModel>,
            /// Random extra delay, which reorders packets; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub reorder: Option<Reordering>,
            /// Probability that a packet arrives twice; 0 by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub duplicate: Option<Probability>,
            /// Probability that a packet arrives with an inverted bit; 0 by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub corrupt: Option<Probability>,
        }

        impl $name {
            /// Sets the rate.
            #[must_use]
            pub fn rate(mut self, rate: Rate) -> Self {
                self.rate = Some(rate);
                self
            }

            /// Sets the one-way propagation delay.
            #[must_use]
            pub fn delay(mut self, delay: Span) -> Self {
                self.delay = Some(delay);
                self
            }

            /// Sets the queue limit.
            #[must_use]
            pub fn queue(mut self, limit: QueueLimit) -> Self {
                self.queue = Some(limit);
                self
            }

            /// Sets the loss model.
            #[must_use]
            pub fn loss(mut self, loss: LossModel) -> Self {
                self.loss = Some(loss);
                self
            }

            /// Takes from `base` the link parameters that are not set.
            #[allow(dead_code)] // only paths and their parts inherit
            pub(super) fn inherit(&mut self, base: &Self) {
                if self.rate.is_none() && self.trace.is_none() {
                    (self.rate, self.trace) = (base.rate, base.trace.clone());
                }
                self.delay = self.delay.or(base.delay);
                self.queue = self.queue.or(base.queue);
                self.mtu = self.mtu.or(base.mtu);
                self.mark_at = self.mark_at.or(base.mark_at);
                self.red = self.red.or(base.red);
                self.codel = self.codel.or(base.codel);
                self.policer = self.policer.or(base.policer);
                self.middlebox = self.middlebox.or(base.middlebox);
                self.loss = self.loss.take().or_else(|| base.loss.clone());
                self.reorder = self.reorder.or(base.reorder);
                self.duplicate = self.duplicate.or(base.duplicate);
                self.corrupt = self.corrupt.or(base.corrupt);
            }

            /// Configuration of one direction, in which `over` overrides these parameters.
            pub(crate) fn config(&self, over: &LinkSpec) -> LinkConfig {
                let mtu = over.mtu.or(self.mtu);
                let own = over.rate.is_some() || over.trace.is_some();
                let (rate, trace) =
                    if own { (over.rate, &over.trace) } else { (self.rate, &self.trace) };
                let codel = over.codel.or(self.codel);
                let default =
                    if codel.is_some() { Codel::LIMIT } else { QueueLimit::default() };
                LinkConfig {
                    rate,
                    trace: trace.clone(),
                    delay: over.delay.or(self.delay).unwrap_or_default().duration(),
                    queue: over.queue.or(self.queue).unwrap_or(default),
                    mtu: mtu.map(|size| u32::try_from(size.0).unwrap_or(u32::MAX)),
                    mark_at: over.mark_at.or(self.mark_at),
                    red: over.red.or(self.red),
                    codel,
                    policer: over.policer.or(self.policer),
                    middlebox: over.middlebox.or(self.middlebox),
                    loss: over.loss.clone().or_else(|| self.loss.clone()).unwrap_or_default(),
                    reorder: over.reorder.or(self.reorder),
                    duplicate: over.duplicate.or(self.duplicate).unwrap_or_default(),
                    corrupt: over.corrupt.or(self.corrupt).unwrap_or_default(),
                }
            }
        }
    };
}

with_link_parameters! {
    /// Parameters of a link, or of one direction of it; parameters that are not set come from the
    /// enclosing table.
    LinkSpec {}
}

with_link_parameters! {
    /// `[[path]]`: a separate two-way link between the two hosts of the scenario.
    ///
    /// With `edge`, the path is interface - edge - router - this link - router - edge - interface,
    /// the topology of the ns-2 studies; loss and queue given here are those of the middle link.
    PathSpec {
        /// Name of the path; "path0", "path1", ... by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Addresses of the two ends, the sender's first; 10.n.0.1 and 10.n.0.2 for path n by
        /// default.
        #[serde(skip_serializing_if = "Option::is_none")]
        addresses: Option<[IpAddr; 2]>,
        /// Overrides for the direction from the sender to the receiver.
        #[serde(skip_serializing_if = "Option::is_none")]
        forward: Option<LinkSpec>,
        /// Overrides for the direction from the receiver to the sender.
        #[serde(skip_serializing_if = "Option::is_none")]
        back: Option<LinkSpec>,
        /// The links between the interfaces and the middle link, both directions and both ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        edge: Option<LinkSpec>,
        /// Name of an earlier path whose middle link and routers this path uses too, with edge
        /// links of its own: a shared bottleneck.
        #[serde(skip_serializing_if = "Option::is_none")]
        shares: Option<String>,
        /// Background traffic over the middle link, from single-homed nodes at its two ends; needs
        /// `edge`.
        #[serde(skip_serializing_if = "Option::is_none")]
        cross_traffic: Option<CrossTraffic>,
        /// NAT between the sender and the middle link; none by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        nat: Option<NatSpec>,
    }
}

with_link_parameters! {
    /// `[[link]]`: a two-way link of the general graph.
    LinkEntry {
        /// The two ends: the name of a router, or "host.n" for the n-th address of a host counted
        /// from 0 ("host" alone if it has one).
        between: [String; 2],
        /// Name of the link. Its directions are "a->b" and "b->a" by default, "name/forward" and
        /// "name/back" if given.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Overrides for the direction from the first end to the second.
        #[serde(skip_serializing_if = "Option::is_none")]
        forward: Option<LinkSpec>,
        /// Overrides for the direction from the second end to the first.
        #[serde(skip_serializing_if = "Option::is_none")]
        back: Option<LinkSpec>,
        /// NAT between the first end and the link; none by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        nat: Option<NatSpec>,
    }
}

/// `[[node]]`: a host (with addresses) or a router (without).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Name of the node.
    pub name: String,
    /// Addresses of the host's interfaces, one for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
}

impl PathSpec {
    /// The first parameter that is set for the middle link, one of its directions, or its traffic.
    pub(super) fn given(&self) -> Option<&'static str> {
        // All fields are listed, so that a new one causes a compile error.
        let Self {
            name: _,
            addresses: _,
            forward,
            back,
            edge: _,
            shares: _,
            cross_traffic,
            nat,
            rate,
            trace,
            delay,
            queue,
            mtu,
            mark_at,
            red,
            codel,
            policer,
            middlebox,
            loss,
            reorder,
            duplicate,
            corrupt,
        } = self;
        [
            ("rate", rate.is_some()),
            ("trace", trace.is_some()),
            ("delay", delay.is_some()),
            ("queue", queue.is_some()),
            ("mtu", mtu.is_some()),
            ("mark_at", mark_at.is_some()),
            ("red", red.is_some()),
            ("codel", codel.is_some()),
            ("policer", policer.is_some()),
            ("middlebox", middlebox.is_some()),
            ("loss", loss.is_some()),
            ("reorder", reorder.is_some()),
            ("duplicate", duplicate.is_some()),
            ("corrupt", corrupt.is_some()),
            ("forward", forward.is_some()),
            ("back", back.is_some()),
            ("cross_traffic", cross_traffic.is_some()),
            ("nat", nat.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }

    /// Takes from `base` the parameters that are not set.
    pub(super) fn over(mut self, base: Self) -> Self {
        self.inherit(&base);
        let merged = |own: Option<LinkSpec>, base: Option<LinkSpec>| match (own, base) {
            (Some(mut own), Some(base)) => {
                own.inherit(&base);
                Some(own)
            }
            (own, base) => own.or(base),
        };
        Self {
            addresses: self.addresses.or(base.addresses),
            forward: merged(self.forward, base.forward),
            back: merged(self.back, base.back),
            edge: merged(self.edge, base.edge),
            shares: self.shares.or(base.shares),
            cross_traffic: self.cross_traffic.or(base.cross_traffic),
            nat: self.nat.or(base.nat),
            ..self
        }
    }

    /// A path with this rate and this one-way delay.
    pub fn new(rate: Rate, delay: Span) -> Self {
        Self::default().rate(rate).delay(delay)
    }

    /// Adds background traffic over the middle link; needs [`edge`](Self::edge).
    #[must_use]
    pub fn cross_traffic(mut self, traffic: CrossTraffic) -> Self {
        self.cross_traffic = Some(traffic);
        self
    }

    /// Adds a NAT between the sender and the middle link.
    #[must_use]
    pub fn nat(mut self, nat: NatSpec) -> Self {
        self.nat = Some(nat);
        self
    }

    /// A path over the middle link of the named path, with edge links like those of that path.
    pub fn sharing(path: impl Into<String>) -> Self {
        Self { shares: Some(path.into()), ..Self::default() }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the edge links of both ends.
    #[must_use]
    pub fn edge(mut self, edge: LinkSpec) -> Self {
        self.edge = Some(edge);
        self
    }
}
