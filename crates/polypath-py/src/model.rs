//! The receive-buffer model of Qiao 2008, as implemented in Rust.

use polypath_sim::BlockingModel as Inner;
use pyo3::prelude::*;

macro_rules! equations {
    ($( $(#[$doc:meta])* $name:ident: $ty:ty, )*) => {
        /// Conditions under which fast retransmissions over a second path fill the receive buffer
        /// (Qiao 2008, 5). Bandwidths are in bytes a second, times in seconds, sizes in bytes.
        #[pyclass(frozen, module = "polypath._core")]
        #[derive(Debug)]
        pub(crate) struct BlockingModel(Inner);

        #[pymethods]
        impl BlockingModel {
            #[new]
            #[pyo3(signature = (
                *, primary_bandwidth, primary_rtt, primary_queue, secondary_bandwidth, secondary_rtt,
                receive_buffer, mtu=1500.0
            ))]
            const fn new(
                primary_bandwidth: f64,
                primary_rtt: f64,
                primary_queue: f64,
                secondary_bandwidth: f64,
                secondary_rtt: f64,
                receive_buffer: f64,
                mtu: f64,
            ) -> Self {
                Self(Inner {
                    primary_bandwidth,
                    primary_rtt,
                    primary_queue,
                    secondary_bandwidth,
                    secondary_rtt,
                    receive_buffer,
                    mtu,
                })
            }

            $( $(#[$doc])* fn $name(&self) -> $ty { self.0.$name() } )*
        }
    };
}

equations! {
    /// Equation (1).
    avoids_blocking: bool,
    /// Left side of (1), seconds.
    released_by: f64,
    /// Right side of (1), seconds.
    filled_by: f64,
    /// cwnd1_Final, equation (2), bytes.
    final_cwnd: f64,
    /// cwnd1_Previous, equation (3), bytes.
    previous_cwnd: f64,
    /// W, equation (4), bytes.
    sent_before: f64,
    /// V2, equation (5), bytes a second.
    release_rate: f64,
    /// V1, equation (6), bytes a second.
    arrival_rate: f64,
    /// D1, equation (7), seconds.
    wait: f64,
    /// Equation (8): B2 must be above this, bytes a second.
    least_secondary_bandwidth: f64,
    /// Equation (8) holds.
    secondary_is_fast_enough: bool,
    /// Equation (8) solved for B1, bytes a second.
    largest_primary_bandwidth: f64,
}
