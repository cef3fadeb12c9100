//! RFC 9260, section 3: SCTP Packet Format.
