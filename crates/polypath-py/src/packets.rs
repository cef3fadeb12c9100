//! The packets of a run as numpy arrays.

use numpy::PyArray1;
use polypath_sim::trace::{FATES, PacketTrace as Inner};
use pyo3::prelude::*;

use crate::series::array;

macro_rules! columns {
    ($( $(#[$doc:meta])* $name:ident: $ty:ty = $($from:ident).+, )*) => {
        /// Every packet at every link, in three tables of columns: hops, packets and chunks. The
        /// arrays are read-only; they own the memory that the simulator wrote, nothing is copied.
        #[pyclass(frozen, module = "polypath._core")]
        #[derive(Debug)]
        pub(crate) struct PacketTrace {
            /// Names of the associations.
            #[pyo3(get)]
            associations: Vec<String>,
            /// Names of the links, one for each direction.
            #[pyo3(get)]
            links: Vec<String>,
            $( $(#[$doc])* #[pyo3(get)] $name: Py<PyArray1<$ty>>, )*
        }

        impl PacketTrace {
            pub(crate) fn new(py: Python<'_>, inner: Inner) -> Self {
                Self {
                    associations: inner.associations,
                    links: inner.links,
                    $( $name: array(py, inner.$($from).+), )*
                }
            }
        }
    };
}

columns! {
    /// When the packet was offered to the link, in seconds.
    hop_time: f64 = hops.time,
    /// Row of the packet.
    hop_packet: u32 = hops.packet,
    /// Index of the link in `links`.
    hop_link: u32 = hops.link,
    /// Fate of the packet: an index into `FATES`.
    hop_fate: u8 = hops.fate,
    /// When it reached the far end, in seconds; NaN if it did not.
    hop_arrival: f64 = hops.arrival,
    /// Index of the packet's association in `associations`.
    association: u32 = packets.association,
    /// 0 from the side that opened the association, 1 towards it.
    direction: u8 = packets.direction,
    /// Index of the accepting side's address that the packet is sent to or from.
    path: u8 = packets.path,
    /// Bytes on the wire, IP header included.
    size: u32 = packets.size,
    /// Row of its first chunk, and one more element for the end.
    first_chunk: u32 = packets.first_chunk,
    /// Type of the chunk.
    chunk_kind: u8 = chunks.kind,
    /// DATA: TSN, counted from 1; SACK: cumulative TSN ack; otherwise 0.
    chunk_tsn: u32 = chunks.tsn,
    /// DATA: whether its TSN was sent before.
    chunk_retransmission: bool = chunks.retransmission,
    /// SACK, INIT, INIT ACK: the announced window in bytes.
    chunk_a_rwnd: u32 = chunks.a_rwnd,
    /// Row of the chunk's first gap ack block, and one more element for the end.
    first_gap: u32 = chunks.first_gap,
    /// First TSN of each gap ack block.
    gap_first: u32 = chunks.gap_first,
    /// Last TSN of each gap ack block.
    gap_last: u32 = chunks.gap_last,
    /// Row of the chunk's first duplicate TSN, and one more element for the end.
    first_duplicate: u32 = chunks.first_duplicate,
    /// Each duplicate TSN that a SACK reports.
    duplicate: u32 = chunks.duplicate,
}

#[pymethods]
impl PacketTrace {
    /// Possible fates of a packet at a link.
    #[classattr]
    const FATES: [&'static str; FATES.len()] = FATES;
}
