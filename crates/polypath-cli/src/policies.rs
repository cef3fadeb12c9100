//! `polypath policies` and `polypath profiles`: lists of the protocol's policies, profiles and
//! constants.

use polypath::Config;
use polypath::proto::{Kind, PARAMETERS, PROFILES, Parameter};
use serde_json::{Map, Value, json};

/// The decisions and their policies.
pub(crate) fn policies(as_json: bool) -> String {
    let decisions = PARAMETERS.iter().filter_map(|parameter| match parameter.kind {
        Kind::Policy(policies) => Some((parameter, policies())),
        _ => None,
    });
    if as_json {
        let decisions: Vec<Value> = decisions
            .map(|(parameter, policies)| {
                let policies: Vec<Value> = policies
                    .into_iter()
                    .map(|(name, summary)| json!({ "name": name, "summary": summary }))
                    .collect();
                json!({
                    "decision": parameter.name,
                    "summary": parameter.summary(),
                    "default": parameter.default(),
                    "policies": policies,
                })
            })
            .collect();
        return format!("{}\n", Value::from(decisions));
    }
    let mut text = String::new();
    for (parameter, policies) in decisions {
        text += &format!("{}: {}\n", parameter.name, parameter.summary());
        let width = policies.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, summary) in policies {
            let mark = if name == parameter.default() { '*' } else { ' ' };
            text += &format!("  {mark} {name:width$}  {summary}\n");
        }
        text.push('\n');
    }
    text + "* the policy of the profile rfc9260. Choose others with --policy DECISION=NAME.\n"
}

/// The profiles: all parameters of rfc9260, and those in which the others differ from it.
pub(crate) fn profiles(as_json: bool) -> String {
    if as_json {
        let profiles: Vec<Value> = PROFILES
            .iter()
            .map(|profile| {
                let config = (profile.make)();
                let (policies, constants): (Vec<&Parameter>, Vec<&Parameter>) =
                    PARAMETERS.iter().partition(|parameter| parameter.is_policy());
                json!({
                    "profile": profile.name,
                    "summary": profile.summary,
                    "constants": values(&config, constants),
                    "policies": values(&config, policies),
                    "changes": values(&config, changes(&config)),
                })
            })
            .collect();
        return format!("{}\n", Value::from(profiles));
    }
    let mut text = String::new();
    for profile in PROFILES {
        let config = (profile.make)();
        text += &format!("{}: {}\n", profile.name, profile.summary);
        if config == Config::rfc9260() {
            for parameter in PARAMETERS {
                let setting = format!("{} = {}", parameter.name, parameter.default());
                text += &format!("    {setting:38} {}\n", parameter.summary());
            }
        }
        for parameter in changes(&config) {
            text += &format!("    {} = {}\n", parameter.name, parameter.get(&config));
        }
        text.push('\n');
    }
    text + "Choose one with --profile NAME; change it with --config KEY=VALUE, --policy DECISION=NAME.\n"
}

/// The parameters that have another value than in the profile rfc9260.
fn changes(config: &Config) -> Vec<&'static Parameter> {
    let standard = Config::rfc9260();
    PARAMETERS.iter().filter(|one| one.value(config) != one.value(&standard)).collect()
}

fn values(config: &Config, parameters: Vec<&Parameter>) -> Map<String, Value> {
    parameters.into_iter().map(|one| (one.name.to_owned(), one.get(config).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_listed_with_its_changes() {
        let text = profiles(false);
        let cmt_pf = text.split("\n\n").find(|part| part.starts_with("cmt-pf: ")).unwrap();
        let (_, changed) = cmt_pf.split_once('\n').unwrap();
        let expected = "    srtt_heuristic = true\n    retransmission = cwnd\n    \
            loss = split-multiple-fast-retransmit\n    cwnd_update = cuc-v2\n    \
            scheduler = delay-aware\n    failover = cmt-potentially-failed\n    ack = delayed-cmt";
        assert_eq!(changed, expected);
        assert!(text.contains("\n    rto_min = 1 s  "), "{text}");
    }
}
