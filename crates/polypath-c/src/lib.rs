//! `libpolypath`: SCTP sockets over polypath for C programs.
//!
//! This crate has only the exported functions; `polypath-sockets` has the sockets. The headers in
//! `include` document the functions: `polypath.h` declares them, and `polypath/sctp_compat.h` gives
//! them the names of the system's.
//!
//! A function whose descriptor is not one of polypath's SCTP sockets calls the C library's function
//! of the same name.

// The functions of the C library have raw pointers.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
// They are public to C.
#![allow(unreachable_pub)]

mod configuration;
mod sctp;
mod sockets;
mod system;
