//! Samples over time as numpy arrays.

use numpy::{Element, PyArray1, PyArrayMethods as _};
use polypath_sim::series::PathSeries as Inner;
use pyo3::prelude::*;

macro_rules! columns {
    ($( $(#[$doc:meta])* $name:ident: $ty:ty, )*) => {
        /// The variables of one path over time, seen from one side. All arrays have the same length
        /// and are read-only; they own the memory that the simulator wrote, nothing is copied.
        #[pyclass(frozen, module = "polypath._core")]
        #[derive(Debug)]
        pub(crate) struct PathSeries {
            /// Name of the association.
            #[pyo3(get)]
            association: String,
            /// "sender" or "receiver".
            #[pyo3(get)]
            side: String,
            /// Number of the path.
            #[pyo3(get)]
            path: u8,
            $( $(#[$doc])* #[pyo3(get)] $name: Py<PyArray1<$ty>>, )*
        }

        impl PathSeries {
            pub(crate) fn new(py: Python<'_>, inner: Inner) -> Self {
                Self {
                    association: inner.association,
                    side: inner.side,
                    path: inner.path,
                    $( $name: array(py, inner.$name), )*
                }
            }
        }

        #[pymethods]
        impl PathSeries {
            /// Names of the arrays.
            #[classattr]
            const COLUMNS: [&'static str; [$( stringify!($name) ),*].len()] =
                [$( stringify!($name) ),*];

            fn __len__(&self, py: Python<'_>) -> usize {
                self.time.bind(py).len().unwrap_or_default()
            }
        }
    };
}

columns! {
    /// Seconds from the beginning of the run.
    time: f64,
    /// Congestion window in bytes.
    cwnd: u64,
    /// Slow start threshold in bytes.
    ssthresh: u64,
    /// Bytes of DATA outstanding, chunk headers included.
    in_flight: u64,
    /// Retransmission timeout in seconds.
    rto: f64,
    /// Smoothed round-trip time in seconds; 0 before the first sample.
    srtt: f64,
    /// Receive window of the peer in bytes, of the whole association.
    peer_rwnd: u64,
    /// 0 unconfirmed, 1 active, 2 potentially failed, 3 inactive.
    state: u64,
    /// Consecutive errors.
    error_count: u64,
}

/// Wraps a vector in a read-only array without copying; the array frees it.
pub(crate) fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
    let array = PyArray1::from_vec(py, values);
    array.readwrite().make_nonwriteable();
    array.unbind()
}
