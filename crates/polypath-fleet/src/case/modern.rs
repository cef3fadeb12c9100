//! Cases with the profile `modern`, on the networks and with the workloads of the others.

use polypath_proto::DEFAULT_PROFILE;
use polypath_sim::Scenario;
use polypath_sim::random::Random;
use polypath_sim::scenario::Side;

use super::{Dice, RFC9260};

/// The case of a number with the profile `modern`, in half of the cases of the profile `rfc9260`:
/// with its own timers and buffers or with random ones, with one of its congestion controllers and
/// policies for acknowledgements, and mostly with its own policies for several paths.
pub(super) fn draw(recorded: &Scenario, number: u64) -> Option<Scenario> {
    let dice = &mut Dice(Random::named(number, "modern"));
    if recorded.transport.profile.as_deref() != Some(RFC9260) || !dice.one_in(2) {
        return None;
    }
    let mut scenario = recorded.clone();
    scenario.transport.profile = Some(DEFAULT_PROFILE.to_owned());
    let constants = &mut scenario.transport.both;
    if dice.one_in(2) {
        (constants.rto_min, constants.rto_initial, constants.rto_max) = (None, None, None);
    }
    if dice.one_in(2) {
        (constants.receive_buffer, constants.send_buffer) = (None, None);
    }
    if dice.one_in(2) {
        (constants.sack_delay, constants.sack_every) = (None, None);
    }
    let policies = &mut scenario.policy.both;
    policies.loss = None;
    policies.congestion = dice.one_in(4).then(|| "cubic".to_owned());
    policies.ack = dice.one_in(4).then(|| "rate".to_owned());
    if !dice.one_in(4) {
        constants.change_primary_threshold = None;
        policies.scheduler = None;
        policies.failover = None;
        policies.retransmission = None;
        policies.cwnd_update = None;
    }
    // The combination may be refused: a model of the receive buffer needs another window.
    let allowed = [Side::Sender, Side::Receiver].map(|side| scenario.effective(side).is_ok());
    (allowed == [true; 2]).then_some(scenario)
}
