//! The tutorial shows the code of this crate.

use std::fs;
use std::path::Path;

/// Every block of Rust in docs/own-policy.md is in one of the sources, to the letter.
#[test]
fn the_code_of_the_tutorial_is_that_of_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("a file of the repository");
    let sources = ["src/aimd.rs", "src/fastest.rs", "src/lib.rs", "src/main.rs"].map(&read);
    let page = read("../../docs/own-policy.md");
    let blocks: Vec<&str> = page
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("the end of a block").0)
        .collect();
    assert!(blocks.len() >= 8, "{} blocks", blocks.len());
    for block in blocks {
        assert!(sources.iter().any(|source| source.contains(block)), "not in the crate:\n{block}");
    }
    let own: usize = sources
        .iter()
        .flat_map(|source| source.split("#[cfg(test)]").next().unwrap_or_default().lines())
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"))
        .count();
    assert!(own < 60, "{own} lines of code");
}

/// Both policies transfer data in the simulator, in time that depends on their parameters.
#[test]
fn the_policies_run_in_the_simulator() {
    let registry = own_policy::registry();
    let seconds = |congestion: &str| {
        let text = format!(
            "schema = 1\n\
             [[path]]\nrate = \"10 Mbit/s\"\ndelay = \"45 ms\"\nloss = \"1 %\"\n\
             [[path]]\nrate = \"10 Mbit/s\"\ndelay = \"45 ms\"\nloss = \"1 %\"\n\
             [transport]\nprofile = \"cmt\"\n\
             [policy]\nscheduler = \"fastest\"\ncongestion = \"{congestion}\"\n\
             [workload]\nkind = \"bulk\"\nsize = \"8 MB\"\n"
        );
        let scenario =
            polypath_sim::Scenario::from_toml_with(&text, &registry).expect("a scenario");
        let outcome = scenario.run(&polypath_sim::RunOptions::default()).expect("a run");
        outcome.ended_at
    };
    let (timid, bold) = (seconds("aimd"), seconds("aimd:increase=8,decrease=0.9"));
    assert!(bold < 0.7 * timid, "{bold} s and {timid} s");
    let wrong = "schema = 1\n[[path]]\nrate = \"1 Mbit/s\"\n\
                 [policy]\ncongestion = \"aimd:decrease=7\"\n\
                 [workload]\nkind = \"bulk\"\nsize = \"1 B\"\n";
    let error = polypath_sim::Scenario::from_toml_with(wrong, &registry).unwrap_err().to_string();
    assert!(error.contains("policy.congestion") && error.contains("from 0.05 to 0.95"), "{error}");
}
