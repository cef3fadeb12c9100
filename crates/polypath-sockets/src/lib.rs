//! The socket functions of C for SCTP, over polypath's endpoints: what the preloaded library of
//! `polypath run` (`polypath-preload`) and the C library (`polypath-c`) have in common.
//!
//! [`api`] has the functions, with the arguments and results of C. The program's descriptor of an
//! SCTP socket is one end of a local socket pair of type SOCK_SEQPACKET. The other end belongs to
//! the engine: a thread of the same process with a tokio runtime and polypath's endpoints. The pair
//! carries what makes the descriptor readable (`inbox`) or unwritable (`direct`), and its end.
//! Therefore the kernel provides `poll`, `select`, `epoll`, `O_NONBLOCK`, duplicates of
//! descriptors, and waiting for messages with its timeouts and signals, and nothing here replaces
//! these. The pair of a listening socket carries the sockets of new associations (SCM_RIGHTS).
//!
//! Messages stay in the memory of the process: the program's threads pass them to the core, and
//! take them from a queue that the engine fills. Those of a child of fork cross the pair, with a
//! header (`frame`).
//!
//! # Signals
//! The engine's thread blocks all signals, so that handlers run on the program's threads. A call on
//! an SCTP socket takes locks: a signal handler that makes one while it has interrupted another one
//! of the same thread may deadlock. Calls on other descriptors take none.
//!
//! # Fork
//! The engine stays in the process that has started it. A child can read, write and close inherited
//! sockets: from the fork on, what arrives for them crosses the pair, in the parent, too, and so
//! does what the child sends. It can open sockets of its own, with an engine of
//! its own. Requests that concern the association of an inherited socket, such as SCTP_STATUS, fail
//! with EOPNOTSUPP. `exec` keeps inherited descriptors, but the new program does not know them as
//! SCTP sockets.
//!
//! # End
//! When the program ends, its sockets are closed, and the program waits up to five seconds until
//! the peers have everything. A signal that kills the program prevents this.

// The functions of the C library have raw pointers.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

mod abi;
mod address;
pub mod api;
mod bytes;
mod calls;
mod claims;
mod data;
mod defaults;
mod direct;
mod end;
mod engine;
mod errno;
pub mod foreign;
mod frame;
mod hub;
mod inbox;
mod interfaces;
mod link;
mod lookup;
mod many;
mod memory;
mod notify;
mod open;
mod options;
mod parameters;
mod ports;
pub mod private;
mod process;
pub mod real;
mod report;
mod request;
mod rules;
mod security;
mod settings;
mod socket;
mod status;
mod values;
