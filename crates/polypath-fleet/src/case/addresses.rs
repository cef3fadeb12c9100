//! Addresses that are added and removed in some cases.

use polypath_proto::Overrides;
use polypath_sim::Scenario;
use polypath_sim::random::Random;
use polypath_sim::scenario::AddressEvent;
use polypath_sim::units::Span;

use super::{Dice, Harshness};

/// Draws changes of addresses.
pub(super) fn draw(scenario: &mut Scenario, number: u64, harshness: Harshness) {
    if scenario.transport.profile.is_some() || !(number % 16 == 1 || matches!(number % 8, 4 | 5)) {
        return;
    }
    let mut dice = Dice(Random::named(number, "addresses"));
    let transport = &mut scenario.transport;
    let authenticated = transport.both.authentication == Some(true);
    let agreed = authenticated || !dice.one_in(4);
    transport.both.dynamic_addresses = agreed.then_some(true);
    // Sometimes allow both: ASCONFs are then authenticated if the peer supports it.
    transport.both.unauthenticated_addresses =
        (agreed && (!authenticated || dice.one_in(4))).then_some(true);
    if dice.one_in(8) {
        transport.receiver = Some(Overrides {
            dynamic_addresses: Some(false),
            unauthenticated_addresses: Some(false),
            ..Default::default()
        });
    }
    let counts = match scenario.paths.len() {
        0 => [0, 1].map(|host| scenario.nodes[host].addresses.len() as u64),
        paths => [paths as u64; 2],
    };
    // One address of each host stays, if the association has to survive.
    let stays = match scenario.paths.len() {
        0 => counts.map(|count| dice.0.below(count)),
        paths => [dice.0.below(paths as u64); 2],
    };
    for _ in 0..dice.between(1, 6) {
        let host = dice.0.below(2) as usize;
        let interface = dice.0.below(counts[host]);
        if harshness == Harshness::Gentle && interface == stays[host] {
            continue;
        }
        let node = format!("{}.{interface}", ["sender", "receiver"][host]);
        let at = Span::millis(dice.spread(1, 10_000));
        let event = if dice.one_in(3) { AddressEvent::comes } else { AddressEvent::goes };
        let mut event = event(node, at);
        if !dice.one_in(3) {
            event = event.lasting(Span::millis(dice.spread(1, 20_000)));
        }
        if dice.one_in(2) {
            event = event.noticed_after(Span::millis(dice.spread(1, 3_000)));
        }
        scenario.addresses.push(event);
    }
    // Remove events until the association can be opened.
    while scenario.validate().is_err() && scenario.addresses.pop().is_some() {}
}
