//! RFC 9260, section 5: Association Initialization.
