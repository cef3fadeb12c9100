//! RFC 9260, section 9: Termination of Association.
