//! Further outcomes that ns-2's procedures allow: docs/ns2-differences.md, "What does not end".

use polypath_sim::outcome::{AssociationOutcome, SideOutcome};

/// Whether ns-2's procedures allow this association to continue forever.
pub(super) fn may_go_on(association: &AssociationOutcome) -> bool {
    let (sender, receiver) = (&association.sender, &association.receiver);
    dormant(sender)
        || dormant(receiver)
        || abandoned(sender, receiver)
        || abandoned(receiver, sender)
}

/// Whether a side is open without an active path: such an association never ends.
fn dormant(side: &SideOutcome) -> bool {
    side.close.is_none() && side.paths.iter().all(|path| path.state != "active")
}

/// Whether `gone` has given up while `open` probes a path that does not respond: a lost HEARTBEAT
/// on a path that is not active is repeated forever, and is no error of the association.
fn abandoned(open: &SideOutcome, gone: &SideOutcome) -> bool {
    let failed = open.paths.iter().any(|path| path.state != "active");
    open.close.is_none() && failed && gone.close.as_deref() == Some("peer-unreachable")
}
