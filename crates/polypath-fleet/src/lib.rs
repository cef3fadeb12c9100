//! Random networks for polypath: each number is a scenario, each run is judged, and a failing
//! scenario is minimised and kept.
//!
//! - [`case`] draws a scenario from a number.
//! - [`judge`] runs a scenario and decides whether its outcome is one that the RFC, or ns-2 for its
//!   profiles, allows.
//! - [`fleet`] runs many numbers on all processors.
//! - [`minimise`] makes a failing scenario small.
//! - [`corpus`] holds scenarios that have failed; every run replays them.

#![forbid(unsafe_code)]

pub mod case;
pub mod corpus;
pub mod fleet;
pub mod judge;
pub mod minimise;
pub mod seed;
pub mod terms;
