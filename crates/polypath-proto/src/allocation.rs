//! Estimates of the memory that containers and small allocations take, in bytes.

/// Bytes for each entry of a B-tree: a node has room for eleven entries and holds at least five,
/// and every six leaves add an inner node.
pub(crate) const fn tree(entry: usize) -> usize {
    entry * 13 / 5 + 8
}

/// Upper bound of the allocator's overhead for a small allocation.
pub(crate) const ALLOCATION: usize = 32;

/// Additional memory that even the smallest buffers need.
pub(crate) const LEAST: usize = 16 * 1024;
