//! A call that waits, polled by an event loop of Python.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::net::wake::{Signal, runtime};

/// Makes the result, once the interpreter's lock is held.
pub(super) type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
/// The result is what `make` makes.
pub(super) fn finish<F>(make: F) -> Finish
where
    F: FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
{
    Box::new(make)
}

type Waiting = Pin<Box<dyn Future<Output = Finish> + Send>>;

/// A call that waits.
#[pyclass(frozen, module = "polypath._core")]
pub(crate) struct Operation(Mutex<Option<Waiting>>);

impl Operation {
    pub(super) fn new(future: impl Future<Output = Finish> + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::pin(future))))
    }

    fn take(&self) -> Option<Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operation(..)")
    }
}

#[pymethods]
impl Operation {
    /// Returns a tuple with the result, or `None`: `schedule` is then called once, from another
    /// thread, when it is time for the next poll.
    fn poll(&self, py: Python<'_>, schedule: Py<PyAny>) -> PyResult<Option<(Py<PyAny>,)>> {
        let waker = Waker::from(Signal::new(py, schedule)?);
        let Some(mut future) = self.take() else {
            return Err(PyRuntimeError::new_err("the operation has ended"));
        };
        let runtime = runtime()?;
        let polled = py.detach(|| {
            let _in_runtime = runtime.enter();
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(finish) => Ok(finish),
                Poll::Pending => Err(future),
            }
        });
        match polled {
            Ok(finish) => finish(py).map(|result| Some((result,))),
            Err(future) => {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(future);
                Ok(None)
            }
        }
    }

    /// Ends the call, if it still waits.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let runtime = runtime()?;
        let future = self.take();
        py.detach(|| {
            let _in_runtime = runtime.enter();
            drop(future);
        });
        Ok(())
    }
}
