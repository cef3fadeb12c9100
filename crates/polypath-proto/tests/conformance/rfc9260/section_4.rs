//! RFC 9260, section 4: SCTP Association State Diagram.
