//! A random network, configuration and workload, all from one number.
//!
//! A number must keep its meaning: additional draws use a random stream of their own, or depend on
//! the number's lowest bits.

mod addresses;
mod faults;
mod modern;
mod network;
mod transport;
mod workload;

use polypath_proto::BurstRule;
use polypath_sim::Scenario;
use polypath_sim::link::{LossModel, LossScript};
use polypath_sim::random::Random;
use polypath_sim::scenario::{AssociationSpec, CheckEvery};
use polypath_sim::units::Probability;

/// The scenario of a number: as often with the profile `modern` as with any other.
pub fn scenario(number: u64) -> Scenario {
    let recorded = recorded(number);
    modern::draw(&recorded, number).unwrap_or(recorded)
}

/// The scenario of a number with the procedures of RFC 9260 or of ns-2: the networks of the packet
/// digests.
pub fn recorded(number: u64) -> Scenario {
    let mut dice = Dice(Random::named(number, "case"));
    let mut scenario = Scenario::new(format!("case {number:#x}")).seed(number);
    let harshness = Harshness::new(&mut dice);
    network::network(&mut scenario, &mut dice, harshness);
    scenario.transport = transport::transport(&mut dice, harshness);
    scenario.transport.both.burst_rule = (number % 4 == 1).then_some(BurstRule::FlightSize);
    scenario.policy = transport::policies(&mut Dice(Random::named(number, "policies")));
    scenario.transport.both.potentially_failed_cwnd =
        (number % 3 == 1).then_some(number as u32 / 3 % 4 + 1);
    scenario.transport.profile = ns2_profile(number).map(str::to_owned);
    let traffic = matches!(number % 16, 4..=7);
    if traffic {
        let dice = &mut Dice(Random::named(number, "traffic"));
        network::background(&mut scenario, dice, harshness);
    }
    let mut workload = workload::workload(&mut dice, &scenario.transport);
    // Partial reliability alone in some cases, and together with resets in others.
    if number % 8 == 2 || number % 16 == 6 {
        let dice = &mut Dice(Random::named(number, "reliability"));
        transport::partial_reliability(&mut scenario, &mut workload, dice);
    }
    if scenario.paths.is_empty() {
        scenario.associations.push(AssociationSpec::new("sender", "receiver", workload));
    } else {
        scenario.workload = Some(workload);
    }
    transport::resets(&mut scenario, number);
    transport::authenticates(&mut scenario, number);
    transport::extensions(&mut scenario, number);
    transport::bounded_buffers(&mut scenario, number);
    transport::verification(&mut scenario, number);
    addresses::draw(&mut scenario, number, harshness);
    faults::faults(&mut scenario, &mut dice, harshness);
    scenario.run.check_every = CheckEvery::Events(1);
    // Background traffic continues through outages of hours.
    scenario.run.max_events = if traffic { 30_000_000 } else { 3_000_000 };
    forget_refused_threshold(&mut scenario);
    scenario.transport.profile.get_or_insert_with(|| RFC9260.to_owned());
    scenario
}

/// The profile of the cases without ns-2's procedures, on which random constants and policies are
/// set.
const RFC9260: &str = "rfc9260";

/// The profile with ns-2's procedures in the case of a number, if any.
pub const fn ns2_profile(number: u64) -> Option<&'static str> {
    match number % 16 {
        3 => Some("ns2-2.35"),
        11 => Some("paper-2006"),
        _ => None,
    }
}

/// The number of a case with an ns-2 profile, next to a number.
pub const fn with_ns2_profile(number: u64) -> u64 {
    number & !7 | 3
}

struct Dice(Random);

impl Dice {
    fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.between(low, high)
    }

    /// Draws a number from a range; every order of magnitude (in bits) is equally likely.
    fn spread(&mut self, low: u64, high: u64) -> u64 {
        let bits = |n: u64| u64::from(64 - n.leading_zeros());
        let bits = self.between(bits(low), bits(high));
        let top = 1u64 << (bits - 1);
        (top + self.0.below(top)).clamp(low, high)
    }

    fn percent(&mut self, most: u8) -> Probability {
        Probability::percent(self.between(0, most.into()) as u8)
    }
}

/// Removes a Change Primary Threshold that the failover policy rejects.
fn forget_refused_threshold(scenario: &mut Scenario) {
    let constants = &mut scenario.transport.both;
    let least = constants.potentially_failed_max_retrans.unwrap_or(0);
    let low = matches!(constants.change_primary_threshold, Some(Some(n)) if n < least);
    let refused = match scenario.policy.both.failover.as_deref() {
        Some("permanent") => false,
        Some("potentially-failed" | "cmt-potentially-failed") => low,
        _ => true,
    };
    if refused {
        constants.change_primary_threshold = None;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Harshness {
    /// Some loss and reordering: everything must arrive, and the association must close gracefully.
    Gentle,
    /// Outages too, but with constants that outlast them.
    Outages,
    /// Anything.
    Anything,
}

impl Harshness {
    fn new(dice: &mut Dice) -> Self {
        match dice.between(0, 9) {
            0..=4 => Self::Gentle,
            5..=7 => Self::Outages,
            _ => Self::Anything,
        }
    }

    fn loss(self, dice: &mut Dice) -> LossModel {
        let most = match self {
            Self::Gentle => 8,
            Self::Outages => 15,
            Self::Anything => 30,
        };
        let gentle = self == Self::Gentle;
        match dice.between(0, 5) {
            0 | 1 => LossModel::None,
            // The states change with packets, not with time: a long bad state is an outage for a
            // side that sends few packets, such as a SHUTDOWN now and then.
            2 => LossModel::GilbertElliott {
                good_to_bad: Probability::percent(dice.between(1, 3) as u8),
                bad_to_good: Probability::percent(
                    dice.between(if gentle { 50 } else { 20 }, 80) as u8
                ),
                loss_good: Probability::ZERO,
                loss_bad: Probability::percent(
                    dice.between(20, if gentle { 50 } else { 100 }) as u8
                ),
            },
            3 => LossModel::Script(LossScript::packets(
                (0..dice.between(0, 8)).map(|_| dice.between(1, 60)),
            )),
            _ => LossModel::bernoulli(dice.percent(most)),
        }
    }
}
