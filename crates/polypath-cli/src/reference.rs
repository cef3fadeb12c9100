//! `polypath completions` and `polypath man`: files for shells and for man(1), generated from the
//! definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Completions {
    /// Shell to complete commands in
    shell: Shell,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Pages {
    /// Folder for the pages, created if missing; without it, print the page of polypath itself
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// Text at the end of `polypath --help` and of the page polypath(1).
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0  success
    1  failure: one line on standard error, and perhaps a hint
    2  invalid command line
  130  interrupted (SIGINT); 143 terminated (SIGTERM), 129 hung up (SIGHUP)

Data is written to standard output, everything else to standard error.";

/// Prints the completions for a shell.
pub(crate) fn completions(args: &Completions, mut command: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "polypath", &mut text);
    output::print(String::from_utf8_lossy(&text))
}

/// Writes the pages of all commands into a folder, or prints that of the program.
pub(crate) fn pages(args: &Pages, mut command: Command) -> Result<(), Failure> {
    // Gives subcommands their full names, and adds the global options to them.
    command.build();
    match &args.output {
        None => output::print(String::from_utf8_lossy(&page(&command)?)),
        Some(folder) => {
            fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
            write_all(&command, folder)
        }
    }
}

fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page(command)?).map_err(|error| Failure::file("write", &path, &error))?;
    let is_shown = |one: &&Command| one.get_name() != "help" && !one.is_hide_set();
    for subcommand in command.get_subcommands().filter(is_shown) {
        write_all(subcommand, folder)?;
    }
    Ok(())
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Failure::new(format!("cannot write a page: {error}")))?;
    Ok(text)
}
