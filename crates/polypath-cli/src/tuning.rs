//! Profiles, constants and policies by name:
//! `--profile NAME --config KEY=VALUE --policy DECISION=NAME`.

use polypath::Config;
use polypath::Delivery;
use polypath::proto::{DEFAULT_PROFILE, PARAMETERS, Procedures, Registry};

use crate::failure::{Failure, did_you_mean};

/// Options that set the behavior of associations.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Tuning {
    /// Set of constants and policies to start from (see polypath profiles)
    #[arg(long, value_name = "NAME", default_value = DEFAULT_PROFILE, help_heading = "Protocol")]
    profile: String,
    /// Send over all paths at the same time: short for --profile cmt
    ///
    /// Use it on both sides, so that the receiver acknowledges in the same way.
    #[arg(long, conflicts_with = "profile", help_heading = "Protocol")]
    cmt: bool,
    /// As --cmt, but suspend a path after a timeout: short for --profile cmt-pf
    ///
    /// The path gets data again once it answers a HEARTBEAT.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["profile", "cmt"], help_heading = "Protocol")]
    cmt_pf: bool,
    /// Send for the highest rate, or each message as early as possible, or in several copies
    ///
    /// "earliest" sends on the path that delivers first, "redundant" sends copies as well, on other
    /// paths and on the same one, for at most 1 Mbit/s more (see the constants copy_rate and
    /// redundant_copies).
    #[arg(long, value_name = "STANDARD|EARLIEST|REDUNDANT", value_parser = delivery, help_heading = "Protocol")]
    delivery: Option<Delivery>,
    /// Set a constant, such as rto_min=200ms; may be repeated (see polypath profiles)
    #[arg(short, long, value_name = "KEY=VALUE", help_heading = "Protocol")]
    config: Vec<String>,
    /// Choose a policy, such as retransmission=same; may be repeated (see polypath policies)
    #[arg(long, value_name = "DECISION=NAME", help_heading = "Protocol")]
    policy: Vec<String>,
}

impl Tuning {
    fn profile(&self) -> &str {
        match (self.cmt, self.cmt_pf) {
            (true, _) => "cmt",
            (_, true) => "cmt-pf",
            _ => &self.profile,
        }
    }

    /// The configuration that the options select.
    pub(crate) fn config(&self, registry: &Registry) -> Result<Config, Failure> {
        let profile = registry.profile(self.profile()).ok_or_else(|| {
            unknown("profile", self.profile(), registry.profiles().iter().map(|one| one.name))
        })?;
        // By default, transfers survive a change of the host's network. Setting any of these keys
        // disables that default for all of them.
        let own = ["authentication", "dynamic_addresses", "procedures"];
        let disabled =
            self.config.iter().any(|setting| own.iter().any(|key| setting.trim().starts_with(key)));
        let mut config = if profile.procedures() == Procedures::RFC9260 && !disabled {
            let survives = profile.to_builder().authentication(true).dynamic_addresses(true);
            survives.build().map_err(|error| Failure::usage(error.to_string()))?
        } else {
            profile
        };
        if let Some(delivery) = self.delivery {
            set(&mut config, "constant", "delivery", &delivery.to_string(), registry)?;
        }
        for setting in &self.config {
            let (key, value) = pair(setting, "--config", "KEY=VALUE")?;
            set(&mut config, "constant", key, value, registry)?;
        }
        for setting in &self.policy {
            let (decision, name) = pair(setting, "--policy", "DECISION=NAME")?;
            set(&mut config, "policy", decision, name, registry)?;
        }
        config.to_builder().build().map_err(|error| Failure::usage(error.to_string()))
    }
}

fn delivery(text: &str) -> Result<Delivery, String> {
    text.to_lowercase().parse()
}

/// Sets a parameter; `what` is "constant" or "policy".
fn set(
    config: &mut Config,
    what: &str,
    name: &str,
    value: &str,
    registry: &Registry,
) -> Result<(), Failure> {
    let known = || PARAMETERS.iter().filter(|one| one.is_policy() == (what == "policy"));
    let Some(parameter) = known().find(|one| one.name == name) else {
        return Err(unknown(what, name, known().map(|one| one.name)));
    };
    parameter.set(config, value, registry).map_err(|error| Failure::usage(error.to_string()))
}

fn pair<'a>(text: &'a str, option: &str, form: &str) -> Result<(&'a str, &'a str), Failure> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("{option} {text:?} does not have the form {form}"))
    })?;
    Ok((key.trim(), value.trim()))
}

fn unknown(what: &str, name: &str, allowed: impl IntoIterator<Item = &'static str>) -> Failure {
    let allowed: Vec<&str> = allowed.into_iter().collect();
    Failure::usage(format!("there is no {what} {name:?}")).hint(format!(
        "{}allowed: {}",
        did_you_mean(name, &allowed).unwrap_or_default(),
        allowed.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn tuning(config: &[&str], policy: &[&str]) -> Result<Config, Failure> {
        let own = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        let profile = DEFAULT_PROFILE.into();
        let (config, policy) = (own(config), own(policy));
        Tuning { profile, cmt: false, cmt_pf: false, delivery: None, config, policy }
            .config(&Registry::standard())
    }

    #[test]
    fn constants_are_set_by_name() {
        let config = tuning(
            &[
                "rto_min=200ms",
                "rto_initial=0.5 s",
                "receive_buffer=64KiB",
                "heartbeat_interval=off",
                "full_mesh=true",
                "max_paths=4",
            ],
            &["retransmission=same"],
        )
        .unwrap();
        assert_eq!(config.rto_min(), Duration::from_millis(200));
        assert_eq!(config.rto_initial(), Duration::from_millis(500));
        assert_eq!(config.receive_buffer(), 65_536);
        assert_eq!(config.heartbeat_interval(), None);
        assert!(config.full_mesh());
        assert_eq!(config.max_paths(), 4);
        assert_eq!(config.retransmission().name, "same");
    }

    #[test]
    fn messages_may_be_sent_in_copies() {
        let registry = Registry::standard();
        let mut tuning = Tuning {
            profile: DEFAULT_PROFILE.into(),
            cmt: false,
            cmt_pf: false,
            delivery: Some(delivery("redundant").unwrap()),
            config: vec!["redundant_copies=1".to_owned()],
            policy: Vec::new(),
        };
        let config = tuning.config(&registry).unwrap();
        assert_eq!((config.delivery(), config.redundant_copies()), (Delivery::Redundant, 1));
        tuning.delivery = None;
        assert_eq!(tuning.config(&registry).unwrap().delivery(), Delivery::Standard);
        assert!(delivery("twice").unwrap_err().contains("standard, earliest, redundant"));
    }

    #[test]
    fn wrong_values_name_what_is_allowed() {
        let text =
            |config: &[&str], policy: &[&str]| tuning(config, policy).unwrap_err().to_string();
        let wrong = text(&["rto_min=fast"], &[]);
        assert_eq!(
            wrong,
            "polypath: rto_min is \"fast\", but must be from 1 ns to 1 h: a number and ns, us, ms, s, \
             min or h, such as \"45 ms\""
        );
        assert!(text(&["max_paths=300"], &[]).contains("must be from 1 to 64"));
        assert!(text(&["rto_mni=1s"], &[]).contains("hint: did you mean \"rto_min\"? allowed: "));
        assert!(text(&["scheduler=primary"], &[]).contains("there is no constant \"scheduler\""));
        assert!(text(&["rto=1s"], &[]).contains("hint: allowed: rto_initial, rto_min"));
        assert!(text(&["rto_min"], &[]).contains("KEY=VALUE"));
        assert!(text(&[], &["retransmission=x"]).contains("must be hybrid, same, "));
        assert!(text(&[], &["retransmission=hybird"]).contains("did you mean \"hybrid\"?"));
        assert!(text(&[], &["x=y"]).contains("allowed: retransmission, loss"));
        assert!(text(&["rto_min=0s"], &[]).contains("from 1 ns to 1 h"));
        let refused = text(&[], &["retransmission=same", "probing=after-rto"]);
        assert!(refused.contains("probing is after-rto, but must be idle"), "{refused}");
    }
}
