//! The `polypath` program with the policies of this crate.

fn main() -> std::process::ExitCode {
    polypath_cli::main(&own_policy::registry())
}
