//! Gives unmodified, dynamically linked programs polypath instead of the kernel's SCTP.
//!
//! `polypath run` sets LD_PRELOAD to this library, which replaces functions of the C library. A
//! call on a descriptor that is not an SCTP socket goes straight to the C library.
//!
//! The program's descriptor of an SCTP socket is one end of a local socket pair of type
//! SOCK_SEQPACKET. The other end belongs to the engine: a thread of the same process with a tokio
//! runtime and polypath's endpoints. Messages cross the pair with a header (`frame`). Therefore the
//! kernel provides blocking, timeouts, signals, `poll`, `select`, `epoll`, `O_NONBLOCK`, duplicates
//! of descriptors and back pressure, and the library replaces none of these. The pair of a
//! listening socket carries the sockets of new associations (SCM_RIGHTS).
//!
//! # Signals
//! The engine's thread blocks all signals, so that handlers run on the program's threads. A call on
//! an SCTP socket takes locks: a signal handler that makes one while it has interrupted another one
//! of the same thread may deadlock. Calls on other descriptors take none.
//!
//! # Fork
//! The engine stays in the process that has started it. A child can read, write and close inherited
//! sockets, since their data crosses the pair, and can open sockets of its own, with an engine of
//! its own. Requests that concern the association of an inherited socket, such as SCTP_STATUS, fail
//! with EOPNOTSUPP. `exec` keeps inherited descriptors, but the new program does not know them as
//! SCTP sockets.
//!
//! # End
//! When the program ends, its sockets are closed, and the library waits up to five seconds until
//! the peers have everything. A signal that kills the program prevents this.

// Tests leave the functions out that replace the C library's.
#![cfg_attr(test, allow(dead_code))]
// The functions of the C library have raw pointers.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

mod abi;
mod address;
mod bytes;
mod calls;
mod data;
mod end;
mod engine;
mod errno;
mod frame;
#[cfg(not(test))]
mod hooks;
mod hub;
mod interfaces;
mod link;
mod lookup;
mod many;
mod notify;
mod open;
mod options;
mod parameters;
mod private;
mod process;
mod real;
mod report;
mod request;
mod rules;
mod security;
mod settings;
mod socket;
mod status;
mod values;
