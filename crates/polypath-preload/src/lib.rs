//! Gives unmodified, dynamically linked programs polypath instead of the kernel's SCTP.
//!
//! `polypath run` sets LD_PRELOAD to this library, which replaces functions of the C library. A
//! call on a descriptor that is not an SCTP socket goes straight to the C library. A call on an
//! SCTP socket goes to `polypath-sockets`, whose documentation describes sockets, signals, fork and
//! the end of the program.

// Tests leave the functions out that replace the C library's.
#![cfg_attr(test, allow(dead_code))]
// The functions of the C library have raw pointers.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(test))]
mod hooks;
#[cfg(not(test))]
mod real;
