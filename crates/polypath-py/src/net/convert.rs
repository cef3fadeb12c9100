//! Converts errors, events and statistics to Python.

use std::io;

use polypath::{BindError, CloseReason, ConnectError, Event, Path, SendError};
use polypath_apps::error::Error;
use pyo3::exceptions::{
    PyBrokenPipeError, PyConnectionAbortedError, PyConnectionError, PyConnectionRefusedError,
    PyConnectionResetError, PyOSError, PyPermissionError, PyTimeoutError,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::net::options::wrong;

/// The exception for the end of an association.
pub(super) fn closed(reason: &CloseReason) -> PyErr {
    let text = reason.to_string();
    match reason {
        CloseReason::Graceful => PyBrokenPipeError::new_err("the association is closed"),
        CloseReason::LocalAbort => PyConnectionAbortedError::new_err(text),
        CloseReason::PeerAbort { .. } => PyConnectionResetError::new_err(text),
        CloseReason::NoAnswer | CloseReason::PeerUnreachable | CloseReason::ShutdownTimeout => {
            PyTimeoutError::new_err(text)
        }
        CloseReason::Unreachable { .. } => PyConnectionRefusedError::new_err(text),
        _ => PyConnectionError::new_err(text),
    }
}

pub(super) fn send_error(error: &SendError) -> PyErr {
    match error {
        SendError::Closed(reason) => closed(reason),
        SendError::ShuttingDown => PyBrokenPipeError::new_err(error.to_string()),
        SendError::Empty | SendError::TooLarge { .. } | SendError::NoSuchStream { .. } => {
            wrong(error)
        }
        _ => PyOSError::new_err(error.to_string()),
    }
}

pub(super) fn connect_error(error: &ConnectError) -> PyErr {
    match error {
        ConnectError::Closed(CloseReason::PeerAbort { .. }) | ConnectError::Refused(_) => {
            PyConnectionRefusedError::new_err(error.to_string())
        }
        ConnectError::Closed(reason) => closed(reason),
        ConnectError::NotBound { .. } => wrong(error),
        ConnectError::EndpointClosed => PyConnectionError::new_err(error.to_string()),
        _ => PyOSError::new_err(error.to_string()),
    }
}

pub(super) fn bind_error(error: &BindError) -> PyErr {
    let number = match error {
        BindError::InUse { .. } => libc_number(io::ErrorKind::AddrInUse),
        BindError::NotLocal { .. } => libc_number(io::ErrorKind::AddrNotAvailable),
        BindError::RawNotPermitted => return PyPermissionError::new_err(error.to_string()),
        BindError::Socket { source, .. } => source.raw_os_error(),
        _ => None,
    };
    match number {
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}

/// The number that Python knows an error by.
fn libc_number(kind: io::ErrorKind) -> Option<i32> {
    let name = match kind {
        io::ErrorKind::AddrInUse => "EADDRINUSE",
        _ => "EADDRNOTAVAIL",
    };
    Python::try_attach(|py| py.import("errno")?.getattr(name)?.extract()).and_then(Result::ok)
}

/// The exception for a secret that was not proved.
pub(super) fn consent_error(error: &Error) -> PyErr {
    match error {
        Error::Closed(reason) => closed(reason),
        error => PyConnectionRefusedError::new_err(error.to_string()),
    }
}

/// One path, as keyword arguments of `polypath.aio.Path`.
pub(super) fn path<'py>(
    py: Python<'py>,
    path: &Path,
    primary: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (view, stats) = (&path.view, &path.stats);
    let dict = PyDict::new(py);
    dict.set_item("number", view.id.index())?;
    dict.set_item("local", view.local.to_string())?;
    dict.set_item("remote", view.remote.to_string())?;
    dict.set_item("state", view.state.to_string())?;
    dict.set_item("primary", primary)?;
    dict.set_item("rtt", view.srtt.map(|srtt| srtt.as_secs_f64()))?;
    dict.set_item("rto", view.rto.as_secs_f64())?;
    dict.set_item("cwnd", view.window.cwnd)?;
    dict.set_item("in_flight", view.in_flight)?;
    dict.set_item("mtu", path.mtu.mtu)?;
    dict.set_item("errors", view.error_count)?;
    dict.set_item("packets_sent", stats.packets_sent)?;
    dict.set_item("packets_received", stats.packets_received)?;
    dict.set_item("bytes_sent", stats.bytes_sent)?;
    dict.set_item("bytes_received", stats.bytes_received)?;
    let again = stats.fast_retransmissions + stats.timeout_retransmissions;
    dict.set_item("retransmissions", again)?;
    dict.set_item("timeouts", stats.timeouts)?;
    dict.set_item("failures", stats.failures)?;
    Ok(dict)
}

/// An event, as keyword arguments of `polypath.aio.Event`.
pub(super) fn event<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let kind = match event {
        Event::Established { .. } => "established",
        Event::SendFailed { stream, bytes, sent, .. } => {
            dict.set_item("stream", stream.0)?;
            let part = if *sent { "sent at least in part" } else { "not sent" };
            dict.set_item("text", format!("a message of {bytes} bytes was given up, {part}"))?;
            "send-failed"
        }
        Event::PathAdded { path } => {
            dict.set_item("path", path.index())?;
            "path-added"
        }
        Event::LocalAddress { address, change, granted } => {
            let done = if *granted { "granted" } else { "denied" };
            dict.set_item("text", format!("{address}: {change:?}, {done}").to_lowercase())?;
            "local-address"
        }
        Event::PathState { path, from, to, at } => {
            dict.set_item("path", path.index())?;
            dict.set_item("previous", from.to_string())?;
            dict.set_item("state", to.to_string())?;
            dict.set_item("time", at.as_secs_f64())?;
            "path-state"
        }
        Event::CurrentPath { path, at } => {
            dict.set_item("path", path.index())?;
            dict.set_item("time", at.as_secs_f64())?;
            "current-path"
        }
        Event::PrimaryChanged { path } => {
            dict.set_item("path", path.index())?;
            "primary-path"
        }
        Event::PathRefused { path } => {
            dict.set_item("path", path.index())?;
            "path-refused"
        }
        Event::Restarted => "restarted",
        Event::PeerError { cause, .. } => {
            dict.set_item("text", cause)?;
            "peer-error"
        }
        Event::PeerShutdown => "peer-shutdown",
        Event::Closed(reason) => {
            dict.set_item("text", reason.to_string())?;
            "closed"
        }
        other => {
            dict.set_item("text", format!("{other:?}"))?;
            "other"
        }
    };
    dict.set_item("kind", kind)?;
    Ok(dict)
}
