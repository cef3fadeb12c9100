//! `[[address]]`: addresses of hosts are added and removed at given times.

use serde::{Deserialize, Serialize};

use super::serialize::is_default;
use crate::units::Span;

/// Kind of change of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressKind {
    /// The host has the address from now on.
    Comes,
    /// The host no longer has the address.
    Goes,
}

/// `[[address]]`: an address that is added or removed. While its host does not have it, the host
/// sends nothing from it, and packets to it are lost. An address that is added first is absent
/// before; addresses without an event are always present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressEvent {
    /// Time of the change, from the beginning of the run.
    pub at: Span,
    /// Duration, after which the change is reversed. Without it, the change is permanent.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// The interface with the address: "laptop.1", or "sender.1" and "receiver.1" for the path with
    /// number 1, or the name of a host that has one address.
    pub node: String,
    /// Kind of the change.
    pub kind: AddressKind,
    /// Time that the operating system takes to notify the host's endpoints, which then learn the
    /// addresses present at that time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub notice_delay: Span,
}

impl AddressEvent {
    fn new(node: impl Into<String>, at: Span, kind: AddressKind) -> Self {
        Self { at, lasts: None, node: node.into(), kind, notice_delay: Span::default() }
    }

    /// Adds an address.
    pub fn comes(node: impl Into<String>, at: Span) -> Self {
        Self::new(node, at, AddressKind::Comes)
    }

    /// Removes an address.
    pub fn goes(node: impl Into<String>, at: Span) -> Self {
        Self::new(node, at, AddressKind::Goes)
    }

    /// Reverses the change after this time.
    #[must_use]
    pub fn lasting(mut self, span: Span) -> Self {
        self.lasts = Some(span);
        self
    }

    /// Delays the notification of the endpoints by this time.
    #[must_use]
    pub fn noticed_after(mut self, delay: Span) -> Self {
        self.notice_delay = delay;
        self
    }
}

#[cfg(test)]
mod tests {
    use polypath_proto::Time;

    use super::*;
    use crate::network::{Move, NodeId};
    use crate::scenario::{Plan, Scenario};

    const GOOD: &str =
        "schema = 1\n[[path]]\n[[path]]\n[workload]\nsize = \"1 MB\"\nstart = \"2 s\"\n";

    fn error(lines: &str) -> String {
        Scenario::from_toml(&format!("{GOOD}{lines}")).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_what_happens() {
        let scenario = Scenario::from_toml(&format!(
            "{GOOD}[[address]]\nat = \"5 s\"\nfor = \"1 s\"\nnode = \"sender.0\"\nkind = \"goes\"\n\
             [[address]]\nat = \"1 s\"\nnode = \"sender.1\"\nkind = \"comes\"\nnotice_delay = \"20 ms\"\n"
        ))
        .unwrap();
        let events = [
            AddressEvent::goes("sender.0", Span::secs(5)).lasting(Span::secs(1)),
            AddressEvent::comes("sender.1", Span::secs(1)).noticed_after(Span::millis(20)),
        ];
        assert_eq!(scenario.addresses, events);
        assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
        let moves = Plan::new(&scenario).unwrap().moves;
        let here =
            |node, at: Option<u64>| Move::is_here(&moves, NodeId(node), at.map(Time::from_secs));
        // Nodes in the order of the paths: sender.0, receiver.0, sender.1, receiver.1.
        assert_eq!(
            [None, Some(4), Some(5), Some(6)].map(|at| here(0, at)),
            [true, true, false, true]
        );
        assert_eq!([None, Some(0), Some(1)].map(|at| here(2, at)), [false, false, true]);
        assert!(here(1, Some(5)));
        assert_eq!(moves[0].noticed(), Time::from_millis(1_020));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let one = |node: &str, kind: &str, at: &str| {
            format!("[[address]]\nat = \"{at}\"\nnode = \"{node}\"\nkind = \"{kind}\"\n")
        };
        let nobody = "line 7: address: association \"main\" opens at 2 s, when sender and receiver know of \
                      no addresses with a route between them";
        let table = [
            (
                one("sender.2", "comes", "1 s"),
                "line 9: address[0].node: no address \"sender.2\"; did you mean \"sender.0\"? allowed: \
                 sender.0, receiver.0, sender.1, receiver.1",
            ),
            (
                one("sender.1", "came", "1 s"),
                "line 10: address[0].kind: \"came\" is not known; did you mean \"comes\"? allowed: comes, goes",
            ),
            (one("sender.0", "comes", "3 s") + &one("sender.1", "comes", "2001 ms"), nobody),
            // One address remains at each side, but not of the same path.
            (one("sender.0", "goes", "1 s") + &one("receiver.1", "goes", "1 s"), nobody),
            // The address is added in time, but the endpoint learns of it too late.
            (
                one("sender.0", "goes", "1 s")
                    + &one("sender.1", "comes", "1100 ms")
                    + "notice_delay = \"901 ms\"\n",
                nobody,
            ),
        ];
        for (lines, expected) in table {
            assert_eq!(error(&lines), expected);
        }
        let told = one("sender.0", "goes", "1 s")
            + &one("sender.1", "comes", "1100 ms")
            + "notice_delay = \"900 ms\"\n";
        Scenario::from_toml(&format!("{GOOD}{told}")).unwrap();
    }
}
