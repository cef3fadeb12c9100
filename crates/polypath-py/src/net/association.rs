//! Associations.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use polypath::{
    Association as Inner, Delivery, EventsError, Message, PathId, Ppid, Preference, Received,
    Reliability, StreamId,
};
use polypath_apps::accept::Peer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tokio::sync::Mutex;

use crate::net::convert::{self, closed, send_error};
use crate::net::operation::{Operation, finish};
use crate::net::options::wrong;

/// An association over real sockets.
#[pyclass(frozen, module = "polypath._core")]
#[derive(Debug)]
pub(crate) struct Association {
    inner: Inner,
    /// Holds the place of a peer that has proved a secret.
    _peer: Option<Peer>,
}

impl Association {
    pub(super) const fn new(inner: Inner) -> Self {
        Self { inner, _peer: None }
    }

    pub(super) fn of_peer(peer: Peer) -> Self {
        Self { inner: peer.association.clone(), _peer: Some(peer) }
    }

    fn path(&self, number: usize) -> PyResult<PathId> {
        let paths = self.inner.paths();
        let found = paths.iter().find(|path| path.view.id.index() == number);
        found.map(|path| path.view.id).ok_or_else(|| wrong(format!("there is no path {number}")))
    }
}

/// Makes `None`.
fn nothing(py: Python<'_>) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

/// `(payload, stream, ppid, unordered, end)`.
fn message(py: Python<'_>, received: &Received) -> PyResult<Py<PyAny>> {
    let payload = PyBytes::new(py, &received.payload);
    let rest = (received.stream.0, received.ppid.0, received.unordered, received.end);
    let all = (payload, rest.0, rest.1, rest.2, rest.3).into_pyobject(py)?;
    Ok(all.into_any().unbind())
}

fn delivery(text: &str) -> PyResult<Delivery> {
    text.parse().map_err(|error| wrong(format!("delivery: {error}")))
}

#[pymethods]
impl Association {
    #[pyo3(signature = (payload, stream=0, ppid=0, unordered=false, lifetime=None, delivery=None))]
    fn send(
        &self,
        payload: &[u8],
        stream: u16,
        ppid: u32,
        unordered: bool,
        lifetime: Option<f64>,
        delivery: Option<&str>,
    ) -> PyResult<Operation> {
        let delivery = delivery.map(self::delivery).transpose()?;
        let reliability = match lifetime {
            None => Reliability::Reliable,
            Some(seconds) => Reliability::Lifetime(
                Duration::try_from_secs_f64(seconds)
                    .map_err(|_| PyValueError::new_err("lifetime is a number of seconds"))?,
            ),
        };
        let message = Message {
            ppid: Ppid(ppid),
            unordered,
            reliability,
            delivery,
            ..Message::new(StreamId(stream), Bytes::copy_from_slice(payload))
        };
        let association = self.inner.clone();
        Ok(Operation::new(async move {
            match association.send(message).await {
                Ok(()) => finish(nothing),
                Err(error) => finish(move |_| Err(send_error(&error))),
            }
        }))
    }

    /// The next message of any stream, or of this one; `None` at the end.
    #[pyo3(signature = (stream=None))]
    fn receive(&self, stream: Option<u16>) -> Operation {
        let association = self.inner.clone();
        Operation::new(async move {
            let received = match stream {
                Some(stream) => association.recv_from(StreamId(stream)).await,
                None => association.recv().await,
            };
            match received {
                Ok(Some(received)) => finish(move |py| message(py, &received)),
                Ok(None) => finish(nothing),
                Err(error) => finish(move |_| Err(closed(&error.0))),
            }
        })
    }

    /// Ready when the peer has acknowledged everything.
    fn drained(&self) -> Operation {
        let association = self.inner.clone();
        Operation::new(async move {
            match association.drained().await {
                Ok(()) => finish(nothing),
                Err(error) => finish(move |_| Err(closed(&error.0))),
            }
        })
    }

    fn shutdown(&self) -> Operation {
        let association = self.inner.clone();
        Operation::new(async move {
            match association.shutdown().await {
                Ok(()) => finish(nothing),
                Err(error) => finish(move |_| Err(closed(&error.0))),
            }
        })
    }

    fn abort(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.inner.abort(reason));
    }

    /// Ready at the end, with the reason.
    fn closed(&self) -> Operation {
        let association = self.inner.clone();
        Operation::new(async move {
            let text = association.closed().await.to_string();
            finish(move |py| Ok(text.into_pyobject(py)?.into_any().unbind()))
        })
    }

    fn events(&self) -> Events {
        Events(Arc::new(Mutex::new(self.inner.events())))
    }

    /// Each path, with its counters.
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (primary, paths) = py.detach(|| (self.inner.primary(), self.inner.paths()));
        paths.iter().map(|path| convert::path(py, path, path.view.id == primary)).collect()
    }

    /// Counters of the association.
    fn statistics(&self, py: Python<'_>) -> Vec<(&'static str, u64)> {
        let (stats, buffered) = py.detach(|| (self.inner.stats(), self.inner.buffered()));
        vec![
            ("messages_sent", stats.messages_sent),
            ("messages_received", stats.messages_received),
            ("bytes_received", stats.bytes_received),
            ("bytes_unacknowledged", buffered as u64),
            ("duplicates_received", stats.duplicates_received),
            ("sacks_sent", stats.sacks_sent),
            ("sacks_received", stats.sacks_received),
        ]
    }

    fn set_primary(&self, path: usize) -> PyResult<()> {
        self.inner.set_primary(self.path(path)?).map_err(wrong)
    }

    /// Sets how the messages of a stream, or of all, are sent.
    #[pyo3(signature = (delivery, stream=None))]
    fn set_delivery(&self, delivery: &str, stream: Option<u16>) -> PyResult<()> {
        let delivery = self::delivery(delivery)?;
        self.inner.set_delivery(stream.map(StreamId), delivery).map_err(wrong)
    }

    /// Sets how much a path is preferred.
    fn set_preference(&self, path: usize, rank: u8, budget: u64) -> PyResult<()> {
        let preference = Preference { rank, budget };
        self.inner.set_preference(self.path(path)?, preference).map_err(wrong)
    }

    /// Number of the path that carries new data.
    #[getter]
    fn current_path(&self) -> usize {
        self.inner.current_path().index()
    }

    /// Numbers of outgoing and incoming streams.
    #[getter]
    fn streams(&self) -> (u16, u16) {
        self.inner.streams()
    }

    /// Fingerprint of the peer's certificate; `None` in clear.
    #[getter]
    fn peer(&self) -> Option<String> {
        self.inner.peer().map(|peer| peer.to_string())
    }

    /// Why the association has ended; `None` while it is open.
    #[getter]
    fn close_reason(&self) -> Option<String> {
        self.inner.close_reason().map(|reason| reason.to_string())
    }
}

/// The events of an association from now on.
#[pyclass(frozen, module = "polypath._core")]
#[derive(Debug)]
pub(crate) struct Events(Arc<Mutex<polypath::Events>>);

#[pymethods]
impl Events {
    /// The next event; `None` at the end.
    fn next(&self) -> Operation {
        let events = self.0.clone();
        Operation::new(async move {
            let next = events.lock().await.next().await;
            finish(move |py: Python<'_>| match next {
                Ok(event) => Ok(convert::event(py, &event)?.into_any().unbind()),
                Err(EventsError::Lagged { missed }) => {
                    let dict = PyDict::new(py);
                    dict.set_item("kind", "missed")?;
                    dict.set_item("text", format!("{missed} events were missed"))?;
                    Ok(dict.into_any().unbind())
                }
                Err(_) => Ok(py.None()),
            })
        })
    }
}
