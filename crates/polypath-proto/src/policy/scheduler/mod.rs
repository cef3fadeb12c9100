//! Which path takes new data?

use std::fmt::Debug;

use super::{Answer, PathsView};
use crate::PathId;

pub mod primary;

pub use primary::PRIMARY;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn Scheduler>] = &[&PRIMARY];

/// Decides which path takes the next packet of new data.
pub trait Scheduler: Send + Debug {
    /// The path for the next packet of new data; `None` if it has to wait.
    fn path(&mut self, paths: PathsView<'_>) -> Option<PathId>;
}
