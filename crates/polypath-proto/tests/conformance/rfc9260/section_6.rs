//! RFC 9260, section 6: User Data Transfer.
