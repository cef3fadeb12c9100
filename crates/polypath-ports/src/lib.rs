//! One SCTP port space for the programs of a host that run under `polypath run --shared`.
//!
//! A daemon ([`daemon`]) owns the UDP port for encapsulation (RFC 6951) and the table of SCTP ports
//! ([`table`]). Each process has a connection to it ([`client`]), over which it claims addresses
//! and SCTP ports ([`message`]), and a UDP socket of its own. The UDP sockets of all processes have
//! the same address and form a group (`SO_REUSEPORT`, [`group`]): the kernel runs a program of
//! classic BPF on each datagram ([`select`]), which selects the socket by the SCTP port, and by the
//! local address if several processes have the port. Therefore no datagram passes through the
//! daemon, except those for ports that no process has claimed, which it replies to (RFC 9260 8.4).
//! A process that does not read loses datagrams of its own socket alone.

#![cfg(target_os = "linux")]

pub mod client;
pub mod daemon;
pub mod group;
pub mod message;
mod name;
pub mod select;
pub mod table;
