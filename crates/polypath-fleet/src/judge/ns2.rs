//! What ns-2's procedures allow besides: docs/ns2-differences.md, "What does not end".

use polypath_sim::outcome::{AssociationOutcome, SideOutcome};

/// By ns-2's procedures this association may go on for ever.
pub(super) fn may_go_on(association: &AssociationOutcome) -> bool {
    let (sender, receiver) = (&association.sender, &association.receiver);
    dormant(sender)
        || dormant(receiver)
        || abandoned(sender, receiver)
        || abandoned(receiver, sender)
}

/// An association whose paths have all failed never ends.
fn dormant(side: &SideOutcome) -> bool {
    side.close.is_none() && side.paths.iter().all(|path| path.state != "active")
}

/// `gone` has given up, and `open` probes a path that does not answer: a lost heartbeat to a path
/// that is
/// not active is repeated for ever, and counts as no error of the association.
fn abandoned(open: &SideOutcome, gone: &SideOutcome) -> bool {
    let failed = open.paths.iter().any(|path| path.state != "active");
    open.close.is_none() && failed && gone.close.as_deref() == Some("peer-unreachable")
}
