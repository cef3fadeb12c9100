//! `polypath run`: runs a program with polypath instead of the kernel's SCTP.

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use polypath::UDP_PORT;
use polypath::proto::{DEFAULT_PROFILE, PARAMETERS, Registry};

use crate::failure::{Failure, did_you_mean, system_text};
use crate::{elf, port_space};

/// The preloaded library, and its crate.
const LIBRARY: [&str; 2] = ["libpolypath_preload.so", "polypath-preload"];

/// The program that answers system calls, and its crate.
const SUPERVISOR: [&str; 2] = ["polypath-supervise"; 2];

/// Run a program with polypath instead of the kernel's SCTP
///
/// Its SCTP sockets become polypath's; everything else stays the kernel's. A library is preloaded,
/// or, if the program is statically linked or written in Go, its system calls on SCTP sockets are
/// answered. Packets are sent in clear over UDP (RFC 6951), which other SCTP stacks understand.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Send IP protocol 132 without UDP (needs CAP_NET_RAW)
    #[arg(long, help_heading = "Network", conflicts_with_all = ["port", "peer_port", "encrypt"])]
    raw: bool,
    /// Share one UDP port and one SCTP port space with other programs
    ///
    /// All programs of this user that run with --shared can be reached at the same UDP port, at
    /// different SCTP ports. Sockets that connect use the UDP port, too.
    #[arg(long, help_heading = "Network", conflicts_with_all = ["raw", "encrypt"])]
    shared: bool,
    /// UDP port of sockets that listen
    #[arg(long, value_name = "PORT", default_value_t = UDP_PORT, help_heading = "Network")]
    port: u16,
    /// UDP port of the peers that the program connects to
    #[arg(long, value_name = "PORT", default_value_t = UDP_PORT, help_heading = "Network")]
    peer_port: u16,
    /// Local address instead of the wildcard address; may be repeated
    #[arg(long, value_name = "ADDRESS", help_heading = "Network")]
    bind: Vec<IpAddr>,
    /// Encrypt the packets; the peer must run with --encrypt too (DTLS, RFC 8261)
    #[arg(long, help_heading = "Network")]
    encrypt: bool,
    /// Set of constants and policies to start from (see polypath profiles)
    #[arg(long, value_name = "NAME", default_value = DEFAULT_PROFILE, help_heading = "Protocol")]
    profile: String,
    /// Set a constant, such as rto_min=200ms; may be repeated (see polypath profiles)
    #[arg(short, long, value_name = "KEY=VALUE", help_heading = "Protocol")]
    config: Vec<String>,
    /// Answer the program's system calls, even if a library can be preloaded
    ///
    /// Also those of the programs that it starts. Static and Go programs need it, and have it by
    /// default. It needs Linux 5.19.
    #[arg(long, help_heading = "Program")]
    system_calls: bool,
    /// When the program ends, list its requests that polypath does not support
    #[arg(long, help_heading = "Output")]
    doctor: bool,
    /// The program and its arguments, after --
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Replaces this process by the program.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check(args)?;
    if args.shared {
        port_space::attend(args.port)?;
    }
    let (name, rest) = args.program.split_first().ok_or_else(|| Failure::usage("no program"))?;
    let answered =
        args.system_calls || file(name).is_some_and(|path| elf::makes_system_calls(&path));
    let mut command = if answered {
        let mut command = Command::new(companion(SUPERVISOR)?);
        command.arg(name);
        command
    } else {
        let mut preload = companion(LIBRARY)?.into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let mut command = Command::new(name);
        command.env("LD_PRELOAD", preload);
        command
    };
    command.args(rest);
    for (key, value) in settings(args) {
        match value {
            Some(value) => command.env(format!("POLYPATH_RUN_{key}"), value),
            None => command.env_remove(format!("POLYPATH_RUN_{key}")),
        };
    }
    let error = command.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    let text = format!("cannot run {}: {}", name.to_string_lossy(), system_text(&error));
    Err(Failure::new(text).code(code))
}

/// The options in the library's environment.
fn settings(args: &Args) -> [(&'static str, Option<String>); 9] {
    let flag = |set: bool| set.then(|| "1".to_owned());
    let bind: Vec<String> = args.bind.iter().map(IpAddr::to_string).collect();
    [
        ("RAW", flag(args.raw)),
        ("SHARED", flag(args.shared)),
        ("PORT", Some(args.port.to_string())),
        ("PEER_PORT", Some(args.peer_port.to_string())),
        ("BIND", (!bind.is_empty()).then(|| bind.join(","))),
        ("ENCRYPT", flag(args.encrypt)),
        ("PROFILE", Some(args.profile.clone())),
        ("CONFIG", (!args.config.is_empty()).then(|| args.config.join("\n"))),
        ("REPORT", flag(args.doctor)),
    ]
}

/// Checks the profile and the constants, which the library takes as they are.
fn check(args: &Args) -> Result<(), Failure> {
    let registry = Registry::standard();
    let Some(mut config) = registry.profile(&args.profile) else {
        let known: Vec<&str> = registry.profiles().iter().map(|one| one.name).collect();
        return Err(Failure::usage(format!("there is no profile {:?}", args.profile)).hint(
            format!(
                "{}allowed: {}",
                did_you_mean(&args.profile, &known).unwrap_or_default(),
                known.join(", ")
            ),
        ));
    };
    for setting in &args.config {
        let Some((key, value)) = setting.split_once('=') else {
            let text = format!("--config {setting:?} does not have the form KEY=VALUE");
            return Err(Failure::usage(text));
        };
        let Some(parameter) = PARAMETERS.iter().find(|one| one.name == key) else {
            return Err(Failure::usage(format!("there is no constant {key:?}"))
                .hint("see `polypath profiles`"));
        };
        let set = parameter.set(&mut config, value, &registry);
        set.map_err(|error| Failure::usage(error.to_string()))?;
    }
    let built = config.to_builder().build();
    built.map(drop).map_err(|error| Failure::usage(error.to_string()))
}

/// The file of a program, found as the system finds it.
fn file(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(Path::new(name).to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Finds a file that belongs to this program: next to it, or where a package installs it.
fn companion([name, of]: [&str; 2]) -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find myself: {}", system_text(&error))))?;
    let folder = program.parent().map(PathBuf::from).unwrap_or_default();
    ["", "../lib/polypath", "../lib"]
        .iter()
        .map(|place| folder.join(place).join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Failure::new(format!("{name} is not installed next to the polypath program"))
                .hint(format!("cargo build -p {of} builds it"))
        })
}
