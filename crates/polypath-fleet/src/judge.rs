//! Runs a scenario and decides whether its outcome is allowed.

mod ns2;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use polypath_sim::outcome::{AssociationOutcome, End, FlowOutcome, Outcome, SideOutcome};
use polypath_sim::{RunOptions, Scenario, SimError};

use crate::terms::Terms;

/// Failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Kind of failure, which a minimised scenario has to keep.
    pub class: String,
    /// Description of this run.
    pub story: String,
}

impl Failure {
    fn new(what: &str, story: &str) -> Self {
        Self { class: what.to_owned(), story: format!("{what}: {story}") }
    }

    /// A failure whose class is its text without numbers and addresses.
    fn of_text(what: &str, text: &str) -> Self {
        Self {
            class: format!("{what}: {}", without_numbers(text)),
            story: format!("{what}: {text}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.story)
    }
}

/// Runs a scenario and judges it.
///
/// # Errors
/// The failure of the run.
pub fn run(scenario: &Scenario) -> Result<Outcome, Failure> {
    let (outcome, terms) = outcome(scenario)?;
    judge(&terms, &outcome)?;
    Ok(outcome)
}

/// Runs a scenario without judging the outcome of its associations.
///
/// # Errors
/// The scenario is invalid, or the run was broken off by a panic or by an invariant that did not
/// hold.
pub fn outcome(scenario: &Scenario) -> Result<(Outcome, Terms), Failure> {
    let wrong =
        |error: &dyn fmt::Display| Failure::of_text("the scenario is wrong", &error.to_string());
    let terms = Terms::of(scenario).map_err(|error| wrong(&error))?;
    let options = RunOptions { patience: Some(terms.patience), ..RunOptions::default() };
    match catch_unwind(AssertUnwindSafe(|| scenario.run(&options))) {
        Ok(Ok(outcome)) => Ok((outcome, terms)),
        Ok(Err(SimError::Violation { at, what, .. })) => {
            let mut failure = Failure::of_text("violation", &what);
            failure.story = format!("violation at {at}: {what}");
            Err(failure)
        }
        Ok(Err(error)) => Err(wrong(&error)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
            Err(Failure::of_text("panic", &text.unwrap_or_default()))
        }
    }
}

/// Judges the outcome of a scenario with these terms.
///
/// # Errors
/// The outcome is one that no network justifies.
pub fn judge(terms: &Terms, outcome: &Outcome) -> Result<(), Failure> {
    outcome.associations.iter().try_for_each(|one| association(terms, outcome, one))
}

/// Reasons to close that a network can justify.
const ALLOWED: [&str; 5] = [
    "graceful",
    "peer-unreachable",
    "no-answer",
    "shutdown-timeout",
    // The other side has given up and sent an ABORT.
    "peer-abort",
];

fn association(
    terms: &Terms,
    outcome: &Outcome,
    association: &AssociationOutcome,
) -> Result<(), Failure> {
    let crawls = terms.survives && outcome.ended_at > terms.deadline.duration().as_secs_f64();
    if association.complete && !(crawls && outcome.end == End::Closed) {
        return Ok(());
    }
    let (sender, receiver) = (&association.sender, &association.receiver);
    let everything = all_arrived(&association.forward) && all_arrived(&association.back);
    let story = story(outcome, association);
    if association.complete {
        return Err(Failure::new("crawls", &story));
    }
    let closed = |side: &SideOutcome, reason: &str| side.close.as_deref() == Some(reason);
    for side in [sender, receiver] {
        if side.close.as_deref().is_some_and(|close| !ALLOWED.contains(&close)) || blames(side) {
            let reason = side.close_reason.clone().unwrap_or_default();
            let class = format!("a reason that no network justifies: {}", without_numbers(&reason));
            return Err(Failure { class, story });
        }
    }
    if outcome.end != End::Closed && terms.ns2 && ns2::may_go_on(association) {
        return Ok(());
    }
    if let Some(what) = stuck(terms, outcome.end, association) {
        return Err(Failure::new(what, &story));
    }
    // A handshake that is not complete may depend on a single address of the side that started it.
    let unopened = closed(sender, "no-answer") && terms.may_lose_its_address;
    // T5-shutdown-guard is five times RTO.Max (RFC 9260 9.2): if that is a second, successive
    // losses can outlast the guard.
    let guard =
        everything && [sender, receiver].iter().any(|side| closed(side, "shutdown-timeout"));
    // The SHUTDOWN COMPLETE is lost, and then the address of the side that sent it is removed:
    // nothing answers the SHUTDOWN ACKs, whose number Association.Max.Retrans limits (RFC 9260
    // 9.2).
    let ends = [sender, receiver];
    let unanswered = everything
        && terms.addresses_change
        && ends.iter().any(|side| closed(side, "graceful"))
        && ends.iter().any(|side| closed(side, "peer-unreachable"));
    if terms.survives && !guard && !unopened && !unanswered {
        let [sender, receiver] = [sender, receiver].map(|s| s.close.as_deref().unwrap_or("open"));
        let class = format!("nothing justifies this: {sender}, {receiver}");
        return Err(Failure { story: format!("nothing justifies this: {story}"), class });
    }
    if closed(sender, "graceful") && !everything {
        return Err(Failure::new("closed gracefully with data missing", &story));
    }
    Ok(())
}

/// Whether a close reason blames this side for something that no network does. A peer that gave up
/// reports no cause, or that of its user.
fn blames(side: &SideOutcome) -> bool {
    let reason = side.close_reason.as_deref().unwrap_or_default();
    ["the protocol was violated", "was restarted with new addresses"]
        .iter()
        .any(|blame| reason.contains(blame))
}

/// The failure of a run that did not end by itself, if the association may not continue like this.
fn stuck(terms: &Terms, end: End, association: &AssociationOutcome) -> Option<&'static str> {
    let (sender, receiver) = (&association.sender, &association.receiver);
    // RFC 9260 8.3: one side has ended, and the other, which has nothing to send, detects that only
    // by HEARTBEATs. Probes of path MTUs and of unconfirmed addresses (5.4) may continue.
    let unnoticed = |ended: &SideOutcome, open: &SideOutcome, flow: &FlowOutcome, side: usize| {
        let gone = ended.close.is_some() && open.close.is_none();
        gone && all_arrived(flow) && !terms.heartbeats[side]
    };
    if unnoticed(receiver, sender, &association.forward, 0)
        || unnoticed(sender, receiver, &association.back, 1)
    {
        return None;
    }
    match end {
        End::Closed => None,
        _ if terms.overloaded => None,
        End::Idle => Some("idle"),
        End::Stalled => Some("stuck"),
        End::TimeLimit => Some("too slow"),
        End::EventLimit => Some("too many events"),
    }
}

const fn all_arrived(flow: &FlowOutcome) -> bool {
    flow.messages_sent == flow.messages_delivered + flow.messages_abandoned
}

fn story(outcome: &Outcome, association: &AssociationOutcome) -> String {
    let close = |side: &SideOutcome| side.close_reason.clone().unwrap_or_else(|| "open".to_owned());
    let flow = |flow: &FlowOutcome| {
        let given_up = match flow.messages_abandoned {
            0 => String::new(),
            n => format!(" and {n} given up"),
        };
        format!("{}/{}{given_up}", flow.messages_delivered, flow.messages_sent)
    };
    format!(
        "ended {:?} at {:.3} s, sender {}, receiver {}, forward {}, back {} messages",
        outcome.end,
        outcome.ended_at,
        close(&association.sender),
        close(&association.receiver),
        flow(&association.forward),
        flow(&association.back),
    )
}

/// The text with "#" for each number and address.
fn without_numbers(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_number = word.contains(|c: char| c.is_ascii_digit());
        match (is_number, words.last().map(String::as_str)) {
            (true, Some("#")) => {}
            (true, _) => words.push("#".to_owned()),
            (false, _) => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_no_numbers() {
        let one = "restarted with new addresses: 192.168.0.1, 192.168.1.1";
        assert_eq!(without_numbers(one), "restarted with new addresses: #");
        assert_eq!(without_numbers("12 bytes, but 3 allowed"), "# bytes, but # allowed");
    }
}
