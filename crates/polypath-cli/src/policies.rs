//! `polypath policies` and `polypath profiles`: lists of the protocol's policies, profiles and
//! constants.

use polypath::Config;
use polypath::proto::{PARAMETERS, Parameter, Registered, Registry};
use serde_json::{Map, Value, json};

/// The decisions and their policies.
pub(crate) fn policies(registry: &Registry, as_json: bool) -> String {
    let decisions = PARAMETERS
        .iter()
        .filter(|parameter| parameter.is_policy())
        .map(|parameter| (parameter, registry.entries(parameter.name)));
    if as_json {
        let decisions: Vec<Value> = decisions
            .map(|(parameter, policies)| {
                json!({
                    "decision": parameter.name,
                    "summary": parameter.summary(),
                    "default": parameter.default(),
                    "policies": policies.into_iter().map(as_object).collect::<Vec<_>>(),
                })
            })
            .collect();
        return format!("{}\n", Value::from(decisions));
    }
    let mut text = String::new();
    for (parameter, policies) in decisions {
        text += &format!("{}: {}\n", parameter.name, parameter.summary());
        let width = policies.iter().map(|policy| policy.name.len()).max().unwrap_or(0);
        for Registered { name, summary, parameters, .. } in policies {
            let mark = if name == parameter.default() { '*' } else { ' ' };
            text += &format!("  {mark} {name:width$}  {summary}\n");
            for own in parameters {
                let (default, allowed) = (own.kind.write(&own.default), own.kind.allowed());
                text += &format!(
                    "    {:width$}  {}={default}: {}, {allowed}\n",
                    "", own.name, own.summary
                );
            }
        }
        text.push('\n');
    }
    text + "* the policy of the default profile. Choose others with --policy DECISION=NAME, or with\n  \
            values for a policy's own parameters: --policy DECISION=NAME:KEY=VALUE,KEY=VALUE.\n"
}

fn as_object(policy: Registered) -> Value {
    let parameters: Vec<Value> = policy
        .parameters
        .iter()
        .map(|own| {
            json!({
                "name": own.name,
                "summary": own.summary,
                "default": own.kind.write(&own.default),
                "allowed": own.kind.allowed(),
            })
        })
        .collect();
    json!({ "name": policy.name, "summary": policy.summary, "parameters": parameters })
}

/// The profiles: all parameters of rfc9260, and those in which the others differ from it.
pub(crate) fn profiles(registry: &Registry, as_json: bool) -> String {
    if as_json {
        let profiles: Vec<Value> = registry
            .profiles()
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
    for profile in registry.profiles() {
        let config = (profile.make)();
        text += &format!("{}: {}\n", profile.name, profile.summary);
        if config == Config::rfc9260() {
            for parameter in PARAMETERS {
                let setting = format!("{} = {}", parameter.name, parameter.get(&config));
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
        let text = profiles(&Registry::standard(), false);
        let cmt_pf = text.split("\n\n").find(|part| part.starts_with("cmt-pf: ")).unwrap();
        let (_, changed) = cmt_pf.split_once('\n').unwrap();
        let expected = "    srtt_heuristic = true\n    retransmission = cwnd\n    \
            loss = split-multiple-fast-retransmit\n    cwnd_update = cuc-v2\n    \
            scheduler = delay-aware\n    failover = cmt-potentially-failed\n    ack = delayed-cmt";
        assert_eq!(changed, expected);
        assert!(text.contains("\n    rto_min = 1 s  "), "{text}");
    }
}
