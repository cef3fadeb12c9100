//! The `polypath` program with the policies of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    polypath_cli::main(&own_policy::registry())
}
