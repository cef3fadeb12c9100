//! What is a sample of the round-trip time?

use std::fmt::Debug;

use super::Answer;

pub mod karn;

pub use karn::KARN;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn RttSampling>] = &[&KARN];

/// Decides which chunks measure the round-trip time.
pub trait RttSampling: Send + Debug {
    /// A chunk sent for the `transmissions`-th time may start a measurement.
    fn may_start(&self, transmissions: u32) -> bool;

    /// The measurement started by a chunk counts, if the chunk had been sent `transmissions` times
    /// when it was acknowledged.
    fn counts(&self, transmissions: u32) -> bool;
}
