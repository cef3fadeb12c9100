//! The counterparts of the parameters in ns-2's SCTP module.

use Counterpart::{Ignored, Only, Variable};

/// The counterpart of a constant in ns-2's SCTP module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// A variable of the agent, or a command.
    Variable(&'static str),
    /// The module has no variable for it and behaves as with this value.
    Only(&'static str),
    /// It makes no difference to the module.
    Ignored,
}

/// The counterpart of the constant of this name; `None` for a policy, since the policies select the
/// agent's class and some of its variables together.
pub fn counterpart(constant: &str) -> Option<Counterpart> {
    COUNTERPARTS.iter().find(|(name, _)| *name == constant).map(|(_, counterpart)| *counterpart)
}

static COUNTERPARTS: &[(&str, Counterpart)] = &[
    ("rto_initial", Variable("initialRto_")),
    ("rto_min", Variable("minRto_")),
    ("rto_max", Variable("maxRto_")),
    ("max_burst", Variable("useMaxBurst_")),
    ("burst_rule", Only("after-retransmission")),
    ("new_data_waits", Only("true")),
    ("procedures", Only("ns2")),
    ("path_confirmation", Only("before-data")),
    ("cookie_life", Ignored),
    ("association_max_retrans", Variable("associationMaxRetrans_")),
    ("path_max_retrans", Variable("pathMaxRetrans_")),
    ("potentially_failed_max_retrans", Only("0")),
    ("potentially_failed_cwnd", Variable("cmtPFCwnd_")),
    ("change_primary_threshold", Variable("changePrimaryThresh_")),
    ("max_init_retransmits", Variable("maxInitRetransmits_")),
    ("plain_init", Only("false")),
    ("heartbeat_interval", Variable("heartbeatInterval_")),
    ("hb_max_burst", Only("1")),
    ("sack_delay", Variable("sackDelay_")),
    ("sack_every", Variable("useDelayedSacks_")),
    ("first_sack_at_once", Only("true")),
    ("srtt_heuristic", Only("false")),
    ("tie_seed", Variable("$defaultRNG seed")),
    ("fast_retransmit_reports", Variable("fastRtxTrigger_")),
    ("data_with_cookie", Only("false")),
    ("partial_reliability", Only("false")),
    ("interleaving", Only("false")),
    ("nr_sack", Only("false")),
    ("buffer_splitting", Only("off")),
    ("receive_buffer", Variable("initialRwnd_")),
    ("initial_receive_buffer", Ignored),
    ("send_buffer", Ignored),
    ("initial_send_buffer", Ignored),
    ("buffer_budget", Ignored),
    ("max_message_size", Ignored),
    ("outbound_streams", Ignored),
    ("inbound_streams", Ignored),
    ("initial_ssthresh", Variable("initialSsthresh_")),
    ("initial_cwnd", Only("0")),
    ("cwnd_floor", Only("4")),
    ("path_mtu", Variable("mtu_")),
    ("max_paths", Ignored),
    ("authentication", Only("false")),
    ("authenticated_chunks", Ignored),
    ("dynamic_addresses", Only("false")),
    ("unauthenticated_addresses", Ignored),
    ("adaptation_layer", Ignored),
    ("stream_reconfiguration", Only("false")),
    ("path_mtu_discovery", Only("false")),
    ("ecn", Only("false")),
    ("delivery", Only("standard")),
    ("redundant_copies", Ignored),
    ("copy_rate", Ignored),
    ("copy_share", Ignored),
    ("full_mesh", Only("false")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, PARAMETERS, Registry};

    #[test]
    fn every_constant_has_a_counterpart_and_a_fixed_value_is_one_of_its_values() {
        let registry = Registry::standard();
        let constants = PARAMETERS.iter().filter(|parameter| !parameter.is_policy());
        assert!(constants.clone().map(|one| one.name).eq(COUNTERPARTS.iter().map(|row| row.0)));
        for parameter in constants {
            if let Some(Only(value)) = counterpart(parameter.name) {
                let mut config = Config::rfc9260();
                parameter.set(&mut config, value, &registry).unwrap();
                assert_eq!(parameter.get(&config), value);
            }
        }
    }
}
