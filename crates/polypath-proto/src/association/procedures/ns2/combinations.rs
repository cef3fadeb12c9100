//! What ns-2's procedures exclude.

use crate::config::Config;
use crate::constants::ConfigError;
use crate::policy::scheduler::BOTTLENECK_AWARE;

/// The reason to reject a configuration with these procedures, if there is one.
pub(super) fn refused(c: &Config) -> Option<ConfigError> {
    // The sender stores TSNs in its own structures and has its own rules for reneging; its windows
    // count packets of one size and are reduced by its own procedures; its set of paths is fixed.
    let excluded = [
        ("data_with_cookie", c.data_with_cookie()),
        ("plain_init", c.plain_init()),
        ("stream_reconfiguration", c.stream_reconfiguration()),
        ("partial_reliability", c.partial_reliability()),
        ("interleaving", c.interleaving()),
        ("nr_sack", c.nr_sack()),
        ("authentication", c.authentication()),
        ("dynamic_addresses", c.dynamic_addresses()),
        ("path_mtu_discovery", c.path_mtu_discovery()),
        ("ecn", c.ecn()),
    ];
    if let Some((name, _)) = excluded.into_iter().find(|(_, on)| *on) {
        let allowed = format!("false with procedures {}", c.procedures());
        return Some(ConfigError::new(name, "true", allowed));
    }
    // The module has neither pacing nor the measurements.
    if c.congestion().needs.beyond_acknowledgements() {
        let allowed = "a controller without pacing, for ns-2's procedures have none".to_owned();
        return Some(ConfigError::new("congestion", c.congestion().name, allowed));
    }
    // It sends TSNs in order.
    if c.scheduler().is(&BOTTLENECK_AWARE) {
        let allowed = "a scheduler that sends in order, as ns-2's procedures do".to_owned();
        return Some(ConfigError::new("scheduler", c.scheduler().name, allowed));
    }
    // It does not watch for silence either: its own tables have what is in flight on a path.
    if c.failover().needs.silence {
        let allowed = "a policy that waits for timeouts, as ns-2's procedures do".to_owned();
        return Some(ConfigError::new("failover", c.failover().name, allowed));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::PROCEDURES;
    use crate::config::Config;
    use crate::policy::congestion::CUBIC;
    use crate::policy::failover::SUSPECT;

    #[test]
    fn extensions_need_them_too() {
        let with = [
            Config::rfc9260().to_builder().ecn(true),
            Config::rfc9260().to_builder().interleaving(true),
            Config::rfc9260().to_builder().path_mtu_discovery(true),
            Config::rfc9260().to_builder().stream_reconfiguration(true),
        ];
        let refused = with.map(|config| {
            assert!(config.clone().build().is_ok());
            config.procedures(PROCEDURES).build().unwrap_err().parameter
        });
        let names = ["ecn", "interleaving", "path_mtu_discovery", "stream_reconfiguration"];
        assert_eq!(refused, names);
    }

    #[test]
    fn pacing_needs_the_procedures_of_the_rfc() {
        assert!(Config::rfc9260().to_builder().congestion(&CUBIC).build().is_ok());
        let ns2 = Config::rfc9260().to_builder().procedures(PROCEDURES);
        let error = ns2.congestion(&CUBIC).build().unwrap_err();
        assert_eq!((error.parameter, error.value.as_str()), ("congestion", "cubic"));
    }

    #[test]
    fn watching_for_silence_needs_the_procedures_of_the_rfc() {
        assert!(Config::rfc9260().to_builder().failover(&SUSPECT).build().is_ok());
        let ns2 = Config::rfc9260().to_builder().procedures(PROCEDURES);
        let error = ns2.failover(&SUSPECT).build().unwrap_err();
        assert_eq!((error.parameter, error.value.as_str()), ("failover", "suspect"));
    }
}
