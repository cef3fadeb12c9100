//! The chunk types of RFC 9260 3.2, and those of extensions.

/// Payload data (3.3.1).
pub const DATA: u8 = 0;
/// Initiation (3.3.2).
pub const INIT: u8 = 1;
/// Initiation acknowledgement (3.3.3).
pub const INIT_ACK: u8 = 2;
/// Selective acknowledgement (3.3.4).
pub const SACK: u8 = 3;
/// Heartbeat request (3.3.5).
pub const HEARTBEAT: u8 = 4;
/// Heartbeat acknowledgement (3.3.6).
pub const HEARTBEAT_ACK: u8 = 5;
/// Abort association (3.3.7).
pub const ABORT: u8 = 6;
/// Shutdown association (3.3.8).
pub const SHUTDOWN: u8 = 7;
/// Shutdown acknowledgement (3.3.9).
pub const SHUTDOWN_ACK: u8 = 8;
/// Operation error (3.3.10).
pub const ERROR: u8 = 9;
/// State cookie (3.3.11).
pub const COOKIE_ECHO: u8 = 10;
/// Cookie acknowledgement (3.3.12).
pub const COOKIE_ACK: u8 = 11;
/// Explicit congestion notification echo (reserved; RFC 4960 Appendix A).
pub const ECNE: u8 = 12;
/// Congestion window reduced (reserved; RFC 4960 Appendix A).
pub const CWR: u8 = 13;
/// Shutdown complete (3.3.13).
pub const SHUTDOWN_COMPLETE: u8 = 14;
/// Non-renegable selective acknowledgement (draft-natarajan-tsvwg-sctp-nrsack).
pub const NR_SACK: u8 = 16;
/// Authentication (RFC 4895 4.1).
pub const AUTH: u8 = 15;
/// Address Configuration Acknowledgement (RFC 5061 4.1.2).
pub const ASCONF_ACK: u8 = 128;
/// Re-configuration (RFC 6525 3.1).
pub const RE_CONFIG: u8 = 130;
/// Padding (RFC 4820 3).
pub const PAD: u8 = 132;
/// Time of sending of the packet (Caro 2006; not assigned by a registry).
pub const TIMESTAMP: u8 = 190;
/// Forward cumulative TSN (RFC 3758 3.2).
pub const FORWARD_TSN: u8 = 192;
/// Payload data that may be interleaved (RFC 8260 2.1).
pub const I_DATA: u8 = 64;
/// Forward cumulative TSN with interleaving (RFC 8260 2.3.1).
pub const I_FORWARD_TSN: u8 = 194;
/// Address Configuration Change (RFC 5061 4.1.1).
pub const ASCONF: u8 = 193;

/// The name of a chunk type, as in its RFC.
pub const fn name(ty: u8) -> Option<&'static str> {
    Some(match ty {
        DATA => "DATA",
        INIT => "INIT",
        INIT_ACK => "INIT ACK",
        SACK => "SACK",
        HEARTBEAT => "HEARTBEAT",
        HEARTBEAT_ACK => "HEARTBEAT ACK",
        ABORT => "ABORT",
        SHUTDOWN => "SHUTDOWN",
        SHUTDOWN_ACK => "SHUTDOWN ACK",
        ERROR => "ERROR",
        COOKIE_ECHO => "COOKIE ECHO",
        COOKIE_ACK => "COOKIE ACK",
        ECNE => "ECNE",
        CWR => "CWR",
        SHUTDOWN_COMPLETE => "SHUTDOWN COMPLETE",
        NR_SACK => "NR-SACK",
        AUTH => "AUTH",
        ASCONF_ACK => "ASCONF-ACK",
        RE_CONFIG => "RE-CONFIG",
        PAD => "PAD",
        TIMESTAMP => "TIMESTAMP",
        FORWARD_TSN => "FORWARD TSN",
        I_DATA => "I-DATA",
        I_FORWARD_TSN => "I-FORWARD-TSN",
        ASCONF => "ASCONF",
        _ => return None,
    })
}
