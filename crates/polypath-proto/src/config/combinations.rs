//! Valid combinations of policies: Caro 2006 (retransmission policies), Fig. 7.
//!
//! |  | HAR | TS | MFR | MFR + HAR | MFR + TS |
//! |---|---|---|---|---|---|
//! | AllRtxAlt | yes | yes | | | |
//! | AllRtxSame | | yes | yes | | yes |
//! | FrSameRtoAlt | yes | yes | yes | yes | yes |
//!
//! and each policy alone. The retransmission flag counts as timestamps (4.2). The rules for
//! AllRtxAlt apply to every policy that may send fast retransmissions on another path.

use super::Config;
use crate::constants::{ConfigError, Thresholds};
use crate::policy::failover::{
    CMT_POTENTIALLY_FAILED, FailoverPolicy, PERMANENT, POTENTIALLY_FAILED,
};
use crate::policy::{Policy, loss, probing, retransmission, rtt_sampling};

/// The reason to reject this configuration's combination of policies, if there is one.
pub(crate) fn refused(c: &Config) -> Option<ConfigError> {
    let same = c.retransmission().is(&retransmission::SAME);
    let alternate = c.retransmission().is(&retransmission::ALTERNATE)
        || c.retransmission().is(&retransmission::RECEIVE_BUFFER);
    let mfr = c.loss().is(&loss::MULTIPLE_FAST_RETRANSMIT);
    let har = c.probing().is(&probing::AFTER_RTO);
    let karn = c.rtt_sampling().is(&rtt_sampling::KARN);
    let refuse =
        |parameter, value: &str, allowed: String| Some(ConfigError::new(parameter, value, allowed));
    if alternate && mfr {
        // 4.3: "Since AllRtxAlt sends fast retransmissions to an alternate path, MFR could cause
        // spurious fast retransmissions when path delays are different."
        let allowed = format!(
            "{} with retransmission {}: a fast retransmission on a slower path would look lost",
            loss::STANDARD.name,
            c.retransmission().name
        );
        return refuse("loss", c.loss().name, allowed);
    }
    if same && har {
        // 4.1: "Since AllRtxSame sends timeout retransmissions to the same destination, HAR is not
        // applicable".
        let allowed = format!(
            "{} with retransmission {}: the retransmission itself goes to the path that timed out",
            probing::IDLE.name,
            retransmission::SAME.name
        );
        return refuse("probing", c.probing().name, allowed);
    }
    if har && !karn {
        let allowed = format!(
            "{} with rtt_sampling {}: one cure for stale RTOs at a time",
            probing::IDLE.name,
            c.rtt_sampling().name
        );
        return refuse("probing", c.probing().name, allowed);
    }
    if c.tie_seed().is_some() && c.ties().is_none() {
        return refuse("tie_seed", &c.tie_seed().unwrap_or_default().to_string(), "off".into());
    }
    if let Some(error) = (c.procedures().sender().refuses)(c) {
        return Some(error);
    }
    refused_thresholds(c.failover(), c.thresholds())
}

/// The reason to reject these thresholds for a failover policy, if there is one.
pub(crate) fn refused_thresholds(
    failover: &Policy<dyn FailoverPolicy>,
    thresholds: Thresholds,
) -> Option<ConfigError> {
    let switchover = thresholds.change_primary?;
    let pfmr = thresholds.potentially_failed_max_retrans;
    let allowed = if failover.is(&PERMANENT) {
        return None;
    } else if !failover.is(&POTENTIALLY_FAILED) && !failover.is(&CMT_POTENTIALLY_FAILED) {
        format!(
            "off with failover {}: only {} and {} change the primary",
            failover.name, PERMANENT.name, POTENTIALLY_FAILED.name
        )
    } else if switchover < pfmr {
        // RFC 7829 5: "the PSMR MUST be set greater or equal to the PFMR value. [...]
        // Implementations MUST reject any other values of PSMR."
        format!("at least potentially_failed_max_retrans ({pfmr}) with failover {}", failover.name)
    } else {
        return None;
    };
    Some(ConfigError::new("change_primary_threshold", switchover.to_string(), allowed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Registry;
    use crate::policy::entry::find;

    /// Fig. 7, and each policy alone: all other combinations are rejected with an error that names
    /// the policies.
    #[test]
    fn the_ten_combinations_of_figure_7_are_allowed() {
        let allowed = |policy: &str, mfr: bool, extension: &str| match (policy, mfr, extension) {
            (_, false, "karn") => true,
            ("alternate" | "receive-buffer", mfr, _) => !mfr,
            ("same", _, "har") => false,
            // The paper's other two, and those of CMT, which the paper does not cover.
            _ => true,
        };
        let mut extended = 0;
        for &retransmission in Registry::standard().retransmission() {
            for mfr in [false, true] {
                for extension in ["karn", "har", "timestamps", "retransmission-flag"] {
                    let mut builder = Config::rfc9260().to_builder().retransmission(retransmission);
                    if mfr {
                        builder = builder.loss(&loss::MULTIPLE_FAST_RETRANSMIT);
                    }
                    builder = match extension {
                        "har" => builder.probing(&probing::AFTER_RTO),
                        name => builder
                            .rtt_sampling(find(Registry::standard().rtt_sampling(), name).unwrap()),
                    };
                    let built = builder.build();
                    let what = format!("{} {mfr} {extension}: {built:?}", retransmission.name);
                    let expected = allowed(retransmission.name, mfr, extension);
                    assert_eq!(built.is_ok(), expected, "{what}");
                    let plain = !mfr && extension == "karn";
                    let papers = ["same", "alternate", "hybrid"].contains(&retransmission.name);
                    extended += u32::from(
                        papers && expected && !plain && extension != "retransmission-flag",
                    );
                    if let Err(error) = built {
                        assert!(["loss", "probing"].contains(&error.parameter), "{what}");
                        assert!(error.allowed.contains(retransmission.name), "{what}");
                    }
                }
            }
        }
        assert_eq!(extended, 10);
    }

    #[test]
    fn heartbeats_after_rto_and_timestamps_exclude_each_other() {
        for name in ["timestamps", "retransmission-flag"] {
            let error = Config::rfc9260()
                .to_builder()
                .probing(&probing::AFTER_RTO)
                .rtt_sampling(find(Registry::standard().rtt_sampling(), name).unwrap())
                .build()
                .unwrap_err();
            assert_eq!((error.parameter, error.value.as_str()), ("probing", "after-rto"));
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    /// Only Caro 2006 (failover), IV, and RFC 7829 5 have a threshold for changing the primary.
    #[test]
    fn a_change_primary_threshold_is_refused_where_it_would_be_ignored() {
        for &answer in Registry::standard().failover() {
            let mut accepted = Vec::new();
            for (threshold, pfmr) in [(None, 2), (Some(0), 0), (Some(1), 2), (Some(2), 2)] {
                let built = Config::rfc9260()
                    .to_builder()
                    .failover(answer)
                    .change_primary_threshold(threshold)
                    .potentially_failed_max_retrans(pfmr)
                    .build();
                accepted.push(built.is_ok());
                if let Err(error) = built {
                    assert_eq!(error.parameter, "change_primary_threshold");
                    assert!(error.allowed.contains(answer.name), "{error}");
                }
            }
            let expected = match answer.name {
                "permanent" => [true; 4],
                "potentially-failed" | "cmt-potentially-failed" => [true, true, false, true],
                _ => [true, false, false, false],
            };
            assert_eq!(accepted, expected, "{}", answer.name);
        }
    }
}
