//! Associations over real sockets on the loopback interface, where all of 127/8 is local.

mod addresses;
mod backpressure;
mod cancellation;
mod closing;
mod encryption;
mod failing;
mod first_message;
mod marks;
mod moving;
mod multihoming;
mod observer;
mod raw;
mod relay;
mod setup;
mod shared;
mod streams;
mod threads;
mod transfer;
