//! RFC 9260, section 8: Fault Management.
