//! Real sockets for asyncio: what `polypath.aio` is built on.
//!
//! Endpoints run in a tokio runtime of this module, with a thread of its own. A call that waits is
//! an [`Operation`](operation::Operation): the event loop of Python polls it, so that a task that
//! is cancelled drops it between two polls. The futures of `polypath` are cancellation-safe, and
//! therefore no message is lost.

mod association;
mod convert;
mod endpoint;
mod identity;
mod operation;
mod options;
mod wake;

use pyo3::prelude::*;

/// Adds the classes to the module.
pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<association::Association>()?;
    module.add_class::<association::Events>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<identity::Identity>()?;
    module.add_class::<operation::Operation>()
}
