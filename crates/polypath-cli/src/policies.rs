//! `polypath policies` and `polypath profiles`: lists of the protocol's policies, profiles and
//! constants.

use polypath::proto::PROFILES;
use serde_json::{Map, Value, json};

use crate::tuning;

/// The extension points and their policies.
pub(crate) fn policies(as_json: bool) -> String {
    let standard = tuning::answers(&polypath::Config::rfc9260());
    let seams = tuning::seams().into_iter().zip(standard);
    if as_json {
        let seams: Vec<Value> = seams
            .map(|((seam, question, answers), standard)| {
                let answers: Vec<Value> = answers
                    .into_iter()
                    .map(|(name, summary)| json!({ "name": name, "summary": summary }))
                    .collect();
                json!({
                    "seam": seam,
                    "question": question,
                    "default": standard,
                    "answers": answers,
                })
            })
            .collect();
        return format!("{}\n", Value::from(seams));
    }
    let mut text = String::new();
    for ((seam, question, answers), standard) in seams {
        text += &format!("{seam}: {question}\n");
        let width = answers.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, summary) in answers {
            let mark = if name == standard { '*' } else { ' ' };
            text += &format!("  {mark} {name:width$}  {summary}\n");
        }
        text.push('\n');
    }
    text + "* the answer of the profile rfc9260. Choose others with --policy SEAM=NAME.\n"
}

/// The profiles with their constants and policies.
pub(crate) fn profiles(as_json: bool) -> String {
    let seams: Vec<&str> = tuning::seams().iter().map(|(seam, ..)| *seam).collect();
    if as_json {
        let profiles: Vec<Value> = PROFILES
            .iter()
            .map(|profile| {
                let config = (profile.make)();
                let constants: Map<String, Value> = tuning::constants(&config)
                    .into_iter()
                    .map(|(key, value, _)| (key.to_owned(), value.into()))
                    .collect();
                let policies: Map<String, Value> = seams
                    .iter()
                    .zip(tuning::answers(&config))
                    .map(|(seam, answer)| ((*seam).to_owned(), answer.into()))
                    .collect();
                json!({
                    "profile": profile.name,
                    "summary": profile.summary,
                    "constants": constants,
                    "policies": policies,
                })
            })
            .collect();
        return format!("{}\n", Value::from(profiles));
    }
    let mut text = String::new();
    for profile in PROFILES {
        let config = (profile.make)();
        text += &format!("{}: {}\n", profile.name, profile.summary);
        for (key, value, summary) in tuning::constants(&config) {
            text += &format!("    {:32} {summary}\n", format!("{key}={value}"));
        }
        for (seam, answer) in seams.iter().zip(tuning::answers(&config)) {
            text += &format!("    {seam}={answer}\n");
        }
        text.push('\n');
    }
    text + "Choose one with --profile NAME; change it with --config KEY=VALUE, --policy SEAM=NAME.\n"
}
