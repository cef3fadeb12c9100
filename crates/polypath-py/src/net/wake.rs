//! The runtime of the sockets, and the way from it to an event loop of Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Wake;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;
use tokio::runtime::{Builder, Runtime};

/// The runtime that drives all endpoints, in one thread.
pub(super) fn runtime() -> PyResult<&'static Runtime> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(1).thread_name("polypath").enable_all();
        builder.build().map_err(|error| error.to_string())
    });
    made.as_ref().map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))
}

/// Wakes a task of an event loop.
///
/// The runtime wakes while it holds locks that a thread with the interpreter's lock may wait for.
/// Therefore a thread of its own makes the calls to Python.
pub(super) struct Signal {
    /// Schedules the next poll, from any thread.
    schedule: Py<PyAny>,
    sent: AtomicBool,
    notifier: Sender<Notice>,
}

/// A message to the thread that calls Python.
enum Notice {
    Wake(Arc<Signal>),
    /// The interpreter ends.
    Stop,
}

impl Signal {
    pub(super) fn new(py: Python<'_>, schedule: Py<PyAny>) -> PyResult<Arc<Self>> {
        let notifier = notifier(py)?;
        Ok(Arc::new(Self { schedule, sent: AtomicBool::new(false), notifier }))
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        if !self.sent.swap(true, Ordering::AcqRel) {
            // Nothing is woken any more when the interpreter has ended.
            let _ = self.notifier.clone().send(Notice::Wake(self));
        }
    }
}

/// The queue of the thread that calls Python.
fn notifier(py: Python<'_>) -> PyResult<Sender<Notice>> {
    static NOTIFIER: PyOnceLock<Sender<Notice>> = PyOnceLock::new();
    let made = NOTIFIER.get_or_try_init(py, || {
        let (sender, notices) = mpsc::channel();
        let thread = std::thread::Builder::new().name("polypath-wake".to_owned());
        let thread = thread
            .spawn(move || notify(&notices))
            .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
        // A thread that attaches to an interpreter while it ends would be killed.
        let (stop, thread) = (sender.clone(), Mutex::new(Some(thread)));
        let process = std::process::id();
        let stop = PyCFunction::new_closure(py, None, None, move |args, _| {
            args.py().detach(|| {
                let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
                // A process that was forked does not have the thread.
                if std::process::id() == process
                    && let (Some(thread), Ok(())) = (thread, stop.send(Notice::Stop))
                {
                    let _ = thread.join();
                }
            });
        })?;
        py.import("atexit")?.call_method1("register", (stop,))?;
        Ok::<_, PyErr>(sender)
    })?;
    Ok(made.clone())
}

fn notify(notices: &Receiver<Notice>) {
    while let Ok(first) = notices.recv() {
        let notices: Vec<_> = std::iter::once(first).chain(notices.try_iter()).collect();
        if notices.iter().any(|notice| matches!(notice, Notice::Stop)) {
            return;
        }
        Python::attach(|py| {
            for notice in notices {
                if let Notice::Wake(signal) = notice {
                    // A loop that was closed meanwhile raises RuntimeError: nothing waits in it.
                    let _ = signal.schedule.call0(py);
                }
            }
        });
    }
}
