//! The `polypath` program, with the policies of the protocol core.

use std::process::ExitCode;

use polypath::proto::Registry;

fn main() -> ExitCode {
    polypath_cli::main(&Registry::standard())
}
