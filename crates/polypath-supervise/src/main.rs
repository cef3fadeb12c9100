//! Runs a program with polypath instead of the kernel's SCTP whose functions cannot be replaced: it
//! is statically linked, or makes system calls of its own. `polypath run` starts this program, with
//! its options in the environment, as for the preloaded library (`polypath-preload`).
//!
//! A seccomp filter ([`filter`]) stops the program's system calls on SCTP sockets until this
//! process has answered them ([`supervisor`]), by the functions of `polypath-sockets` on copies of
//! the program's memory ([`calls`]). The program's descriptor is one end of a local socket pair, as
//! there, so that `poll`, `epoll`, `O_NONBLOCK`, inheritance and the end of a descriptor stay the
//! kernel's. The processes that the program starts have the same filter: one engine, in this
//! process, serves all of them.

#![deny(unsafe_op_in_unsafe_fn)]
// The program's memory, descriptors and signals.
#![allow(unsafe_code)]

mod call;
mod calls;
mod child;
mod dispatch;
mod filter;
mod listener;
mod memory;
mod messages;
mod names;
mod numbers;
mod options;
mod parent;
mod state;
mod supervisor;
mod table;
mod target;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Nothing here replaces functions of the C library.
    polypath_sockets::real::call_directly();
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("polypath: no program\nhint: polypath run starts this program");
        return ExitCode::from(2);
    };
    let arguments: Vec<OsString> = arguments.collect();
    parent::run(&program, &arguments)
}
