//! RFC 9260, section 7: Congestion Control.
