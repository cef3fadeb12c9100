//! Runs a scenario file and prints its outcome as JSON: `scenario FILE [CAPTURE.pcapng]`.

use std::fs::File;
use std::io::BufWriter;

use std::process::ExitCode;

use polypath_sim::{RunOptions, Scenario};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: scenario FILE [CAPTURE.pcapng]")?;
    let scenario = Scenario::from_file(file)?;
    let options = RunOptions::default();
    let outcome = match arguments.next() {
        Some(capture) => {
            let mut out = BufWriter::new(File::create(capture)?);
            scenario.run_captured(&options, &mut out)?
        }
        None => scenario.run(&options)?,
    };
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    Ok(())
}
