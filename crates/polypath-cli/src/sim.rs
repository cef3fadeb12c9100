//! `polypath sim`: runs a scenario in simulated time.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use polypath::proto::Registry;
use polypath_sim::outcome::{AssociationOutcome, End, FlowOutcome, PathChange};
use polypath_sim::scenario::Series;
use polypath_sim::series::PathSeries;
use polypath_sim::{Outcome, RunOptions, SimError};

use crate::failure::Failure;
use crate::output;
use crate::scenario::ScenarioArgs;
use crate::table::Table;
use crate::text;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print the outcome as one JSON object
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write the packets of all links to this pcapng file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap: Option<PathBuf>,
    /// Write cwnd, RTO, state and more of each path over time to this file
    ///
    /// The format is CSV if the name ends with .csv, otherwise JSON.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    series: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let scenario = args.scenario.load(registry)?;
    let mut options = RunOptions::default();
    if args.series.is_some() && scenario.series.is_none() {
        options.series = Some(Series::default());
    }
    let outcome = match &args.pcap {
        None => scenario.run(&options),
        Some(path) => {
            let file = File::create(path).map_err(|error| Failure::file("create", path, &error))?;
            let mut file = BufWriter::new(file);
            let outcome = scenario.run_captured(&options, &mut file);
            file.flush().map_err(|error| Failure::file("write", path, &error))?;
            outcome
        }
    };
    let outcome = outcome.map_err(|error| failure(args.scenario.file(), &error))?;
    if let Some(path) = &args.series {
        write_series(path, &outcome.series)
            .map_err(|error| Failure::file("write", path, &error))?;
    }
    if args.json {
        let json = serde_json::to_string(&outcome)
            .map_err(|error| Failure::new(format!("the outcome has no JSON: {error}")))?;
        output::print_line(json)
    } else {
        output::print(describe(&outcome))
    }
}

fn failure(file: &Path, error: &SimError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        SimError::Violation { seed, .. } => failure.hint(format!(
            "this is a bug in polypath; please report it with {} and --seed {seed}",
            file.display()
        )),
        _ => failure,
    }
}

fn write_series(path: &Path, series: &[PathSeries]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
        writeln!(
            file,
            "association,side,path,time_s,cwnd_bytes,ssthresh_bytes,in_flight_bytes,rto_s,srtt_s,\
             peer_rwnd_bytes,state,error_count"
        )?;
        for s in series {
            for (n, time) in s.time.iter().enumerate() {
                writeln!(
                    file,
                    "{},{},{},{time},{},{},{},{},{},{},{},{}",
                    quoted(&s.association),
                    s.side,
                    s.path,
                    s.cwnd[n],
                    s.ssthresh[n],
                    s.in_flight[n],
                    s.rto[n],
                    s.srtt[n],
                    s.peer_rwnd[n],
                    s.state[n],
                    s.error_count[n],
                )?;
            }
        }
    } else {
        serde_json::to_writer(&mut file, series)?;
        writeln!(file)?;
    }
    file.flush()
}

/// A field of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn describe(outcome: &Outcome) -> String {
    let mut text = String::new();
    let end = match outcome.end {
        End::Closed => "all associations are closed",
        End::Idle => "nothing is left to happen",
        End::TimeLimit => "the time limit is reached",
        End::EventLimit => "the limit of events is reached",
        End::Stalled => "nothing makes progress",
    };
    let name = if outcome.scenario.is_empty() { "scenario" } else { &outcome.scenario };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{name}, seed {}: {end} after {:.3} s and {} events",
        outcome.seed, outcome.ended_at, outcome.events
    );
    for association in &outcome.associations {
        describe_association(&mut text, association);
    }
    for stripe in &outcome.stripes {
        let state = if stripe.complete { "complete" } else { "not complete" };
        let over = stripe.associations.join(", ");
        let _ = writeln!(text, "\n{}, striped over {over}: {state}", stripe.name);
        describe_flow(&mut text, "opening side", "accepting side", &stripe.forward);
        describe_flow(&mut text, "accepting side", "opening side", &stripe.back);
    }
    let _ = writeln!(text, "\nlinks, in packets");
    let mut table = Table::new([
        "link",
        "offered",
        "background",
        "delivered",
        "queue full",
        "lost",
        "link down",
        "too large",
        "middlebox",
        "copies",
        "reordered",
        "corrupted",
    ]);
    for link in &outcome.links {
        let c = &link.counts;
        table.row([
            link.name.clone(),
            c.offered.to_string(),
            link.background.offered.to_string(),
            c.delivered.to_string(),
            c.dropped_queue.to_string(),
            c.lost.to_string(),
            c.lost_outage.to_string(),
            c.dropped_mtu.to_string(),
            c.dropped_middlebox.to_string(),
            c.duplicated.to_string(),
            c.reordered.to_string(),
            c.corrupted.to_string(),
        ]);
    }
    let _ = write!(text, "{table}");
    text
}

fn describe_association(text: &mut String, association: &AssociationOutcome) {
    let state = if association.complete { "complete" } else { "not complete" };
    let _ = writeln!(text, "\n{}: {state}", association.name);
    for side in [&association.sender, &association.receiver] {
        if let Some(reason) = side.close_reason.as_ref().filter(|_| !association.complete) {
            let _ = writeln!(text, "  {}: {reason}", side.host);
        }
    }
    describe_flow(text, &association.sender.host, &association.receiver.host, &association.forward);
    describe_flow(text, &association.receiver.host, &association.sender.host, &association.back);
    let mut table = Table::new([
        "host",
        "path",
        "local",
        "remote",
        "state",
        "sent",
        "fast rtx",
        "timeout rtx",
        "timeouts",
        "srtt",
        "rto",
        "cwnd",
    ]);
    for side in [&association.sender, &association.receiver] {
        for path in &side.paths {
            let c = &path.counts;
            let span = |seconds: f64| text::span(Duration::from_secs_f64(seconds));
            table.row([
                side.host.clone(),
                path.path.to_string(),
                path.local.clone(),
                path.remote.clone(),
                path.state.clone(),
                text::size(c.data_bytes_sent),
                c.fast_retransmissions.to_string(),
                c.timeout_retransmissions.to_string(),
                c.timeouts.to_string(),
                path.srtt.map_or_else(|| "-".to_owned(), span),
                span(path.rto),
                text::size(path.cwnd.into()),
            ]);
        }
    }
    let _ = write!(text, "{table}");
    for change in &association.changes {
        if let Some(line) = describe_change(change) {
            let _ = writeln!(text, "  {line}");
        }
    }
}

fn describe_flow(text: &mut String, from: &str, to: &str, flow: &FlowOutcome) {
    if flow.bytes_sent == 0 {
        return;
    }
    let _ = write!(
        text,
        "  {from} > {to}: {} of {} bytes in {} of {} messages",
        flow.bytes_delivered, flow.bytes_sent, flow.messages_delivered, flow.messages_sent
    );
    if flow.messages_abandoned > 0 {
        let _ = write!(text, " ({} given up)", flow.messages_abandoned);
    }
    if let Some(seconds) = flow.time_from_start {
        let _ = write!(text, " in {seconds:.3} s, {}", text::rate(flow.goodput * 8.0));
    }
    if let Some(gap) = flow.longest_gap {
        let _ = write!(
            text,
            "; longest time without new data: {:.3} s, from {:.3} s on",
            gap.length, gap.start
        );
    }
    if let Some(times) = flow.delivery_times {
        let _ = write!(
            text,
            "; messages took {:.1} ms at the median, {:.1} ms at the 99th percentile",
            times.p50 * 1e3,
            times.p99 * 1e3
        );
    }
    text.push('\n');
}

fn describe_change(change: &PathChange) -> Option<String> {
    let what = match (change.what.as_str(), change.from.as_deref(), change.to.as_deref()) {
        // The first confirmation of a path is not reported.
        ("state", Some("unconfirmed"), Some("active")) => return None,
        ("state", _, Some(to)) => format!("path {} is {to}", change.path),
        ("current", ..) => format!("new data goes to path {}", change.path),
        ("primary", ..) => format!("path {} is the primary", change.path),
        (other, ..) => format!("path {}: {other}", change.path),
    };
    Some(format!("at {:.3} s, {}: {what}", change.at, change.side))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_are_quoted_where_they_have_to_be() {
        assert_eq!(quoted("plain name"), "plain name");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
