//! Links that break or change.

use polypath_sim::Scenario;
use polypath_sim::scenario::{Direction, Fault};
use polypath_sim::units::{Rate, Span};

use super::{Dice, Harshness};

/// Draws outages and changes.
pub(super) fn faults(scenario: &mut Scenario, dice: &mut Dice, harshness: Harshness) {
    let links = scenario.paths.len().max(scenario.links.len());
    let target = |scenario: &Scenario, dice: &mut Dice, mut fault: Fault| {
        if scenario.paths.is_empty() {
            let link = dice.0.pick(&scenario.links);
            fault.path = None;
            fault.link = Some(format!("{}->{}", link.between[0], link.between[1]));
            if dice.one_in(2) {
                fault.link = Some(format!("{}->{}", link.between[1], link.between[0]));
            }
        } else if dice.one_in(3) {
            fault = fault.direction(*dice.0.pick(&[Direction::Forward, Direction::Back]));
        }
        fault
    };
    for _ in 0..dice.between(0, 2) {
        let path = dice.0.below(links as u64) as usize;
        let at = Span::millis(dice.spread(1, 10_000));
        let fault = match dice.between(0, 2) {
            0 => Fault::rate(path, at, Rate(dice.spread(200_000, 100_000_000))),
            1 => Fault::delay(path, at, Span(dice.spread(1, 300_000_000))),
            _ => Fault::loss(path, at, harshness.loss(dice)),
        };
        let fault = target(scenario, dice, fault);
        scenario.faults.push(fault);
    }
    if harshness == Harshness::Gentle {
        return;
    }
    for _ in 0..dice.between(1, 4) {
        let path = dice.0.below(links as u64) as usize;
        let mut fault = Fault::down(path, Span::millis(dice.spread(1, 20_000)));
        // With `Harshness::Anything`, some outages are permanent.
        if harshness == Harshness::Outages || !dice.one_in(4) {
            fault = fault.lasting(Span::millis(dice.spread(1, 30_000)));
        }
        let fault = target(scenario, dice, fault);
        scenario.faults.push(fault);
    }
    // Sometimes all paths are down for a while.
    if !scenario.paths.is_empty() && dice.one_in(3) {
        let at = Span::millis(dice.spread(1, 10_000));
        for path in 0..links {
            let span = Span::millis(dice.spread(100, 20_000));
            scenario.faults.push(Fault::down(path, at).lasting(span));
        }
    }
}
