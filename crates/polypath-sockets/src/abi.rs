//! Numbers of Linux's SCTP (`linux/sctp.h`).

use std::ffi::c_int;

pub(crate) const IPPROTO_SCTP: c_int = 132;
/// Linux's default of SO_SNDBUF and SO_RCVBUF, and its limit for a message.
pub(crate) const BUFFER: c_int = 212_992;

/// Defines the options with their numbers and names.
macro_rules! options {
    ($($constant:ident = $number:literal, $name:literal;)*) => {
        $( pub(crate) const $constant: c_int = $number; )*

        /// Names of options, for the report.
        const NAMES: &[(c_int, &str)] = &[
            $( ($constant, $name), )*
        ];
    };
}

options! {
    RTOINFO = 0, "SCTP_RTOINFO";
    ASSOCINFO = 1, "SCTP_ASSOCINFO";
    INITMSG = 2, "SCTP_INITMSG";
    NODELAY = 3, "SCTP_NODELAY";
    AUTOCLOSE = 4, "SCTP_AUTOCLOSE";
    SET_PEER_PRIMARY_ADDR = 5, "SCTP_SET_PEER_PRIMARY_ADDR";
    PRIMARY_ADDR = 6, "SCTP_PRIMARY_ADDR";
    ADAPTATION_LAYER = 7, "SCTP_ADAPTATION_LAYER";
    DISABLE_FRAGMENTS = 8, "SCTP_DISABLE_FRAGMENTS";
    PEER_ADDR_PARAMS = 9, "SCTP_PEER_ADDR_PARAMS";
    DEFAULT_SEND_PARAM = 10, "SCTP_DEFAULT_SEND_PARAM";
    EVENTS = 11, "SCTP_EVENTS";
    I_WANT_MAPPED_V4_ADDR = 12, "SCTP_I_WANT_MAPPED_V4_ADDR";
    MAXSEG = 13, "SCTP_MAXSEG";
    STATUS = 14, "SCTP_STATUS";
    GET_PEER_ADDR_INFO = 15, "SCTP_GET_PEER_ADDR_INFO";
    DELAYED_SACK = 16, "SCTP_DELAYED_SACK";
    CONTEXT = 17, "SCTP_CONTEXT";
    FRAGMENT_INTERLEAVE = 18, "SCTP_FRAGMENT_INTERLEAVE";
    PARTIAL_DELIVERY_POINT = 19, "SCTP_PARTIAL_DELIVERY_POINT";
    MAX_BURST = 20, "SCTP_MAX_BURST";
    AUTH_CHUNK = 21, "SCTP_AUTH_CHUNK";
    HMAC_IDENT = 22, "SCTP_HMAC_IDENT";
    AUTH_KEY = 23, "SCTP_AUTH_KEY";
    AUTH_ACTIVE_KEY = 24, "SCTP_AUTH_ACTIVE_KEY";
    AUTH_DELETE_KEY = 25, "SCTP_AUTH_DELETE_KEY";
    PEER_AUTH_CHUNKS = 26, "SCTP_PEER_AUTH_CHUNKS";
    LOCAL_AUTH_CHUNKS = 27, "SCTP_LOCAL_AUTH_CHUNKS";
    GET_ASSOC_NUMBER = 28, "SCTP_GET_ASSOC_NUMBER";
    GET_ASSOC_ID_LIST = 29, "SCTP_GET_ASSOC_ID_LIST";
    AUTO_ASCONF = 30, "SCTP_AUTO_ASCONF";
    PEER_ADDR_THLDS = 31, "SCTP_PEER_ADDR_THLDS";
    RECVRCVINFO = 32, "SCTP_RECVRCVINFO";
    RECVNXTINFO = 33, "SCTP_RECVNXTINFO";
    DEFAULT_SNDINFO = 34, "SCTP_DEFAULT_SNDINFO";
    REUSE_PORT = 36, "SCTP_REUSE_PORT";
    PEER_ADDR_THLDS_V2 = 37, "SCTP_PEER_ADDR_THLDS_V2";
    BINDX_ADD = 100, "SCTP_SOCKOPT_BINDX_ADD";
    BINDX_REM = 101, "SCTP_SOCKOPT_BINDX_REM";
    PEELOFF = 102, "SCTP_SOCKOPT_PEELOFF";
    GET_PEER_ADDRS = 108, "SCTP_GET_PEER_ADDRS";
    GET_LOCAL_ADDRS = 109, "SCTP_GET_LOCAL_ADDRS";
    CONNECTX = 110, "SCTP_SOCKOPT_CONNECTX";
    CONNECTX3 = 111, "SCTP_SOCKOPT_CONNECTX3";
    GET_ASSOC_STATS = 112, "SCTP_GET_ASSOC_STATS";
    PR_SUPPORTED = 113, "SCTP_PR_SUPPORTED";
    DEFAULT_PRINFO = 114, "SCTP_DEFAULT_PRINFO";
    PR_ASSOC_STATUS = 115, "SCTP_PR_ASSOC_STATUS";
    PR_STREAM_STATUS = 116, "SCTP_PR_STREAM_STATUS";
    RECONFIG_SUPPORTED = 117, "SCTP_RECONFIG_SUPPORTED";
    ENABLE_STREAM_RESET = 118, "SCTP_ENABLE_STREAM_RESET";
    RESET_STREAMS = 119, "SCTP_RESET_STREAMS";
    RESET_ASSOC = 120, "SCTP_RESET_ASSOC";
    ADD_STREAMS = 121, "SCTP_ADD_STREAMS";
    PEELOFF_FLAGS = 122, "SCTP_SOCKOPT_PEELOFF_FLAGS";
    STREAM_SCHEDULER = 123, "SCTP_STREAM_SCHEDULER";
    STREAM_SCHEDULER_VALUE = 124, "SCTP_STREAM_SCHEDULER_VALUE";
    INTERLEAVING_SUPPORTED = 125, "SCTP_INTERLEAVING_SUPPORTED";
    EVENT = 127, "SCTP_EVENT";
    ASCONF_SUPPORTED = 128, "SCTP_ASCONF_SUPPORTED";
    AUTH_SUPPORTED = 129, "SCTP_AUTH_SUPPORTED";
    ECN_SUPPORTED = 130, "SCTP_ECN_SUPPORTED";
    AUTH_DEACTIVATE_KEY = 35, "SCTP_AUTH_DEACTIVATE_KEY";
    EXPOSE_PF_STATE = 131, "SCTP_EXPOSE_POTENTIALLY_FAILED_STATE";
    UDP_ENCAPS_PORT = 132, "SCTP_REMOTE_UDP_ENCAPS_PORT";
    PROBE_INTERVAL = 133, "SCTP_PLPMTUD_PROBE_INTERVAL";
}

pub(crate) const SCTP_UNORDERED: u16 = 1;
pub(crate) const SCTP_ADDR_OVER: u16 = 2;
pub(crate) const SCTP_ABORT: u16 = 4;
pub(crate) const SCTP_SACK_IMMEDIATELY: u16 = 8;
pub(crate) const SCTP_PR_SCTP_TTL: u16 = 0x10;
pub(crate) const SCTP_PR_SCTP_RTX: u16 = 0x20;
pub(crate) const SCTP_PR_SCTP_PRIO: u16 = 0x30;
/// To all associations of a one-to-many socket.
pub(crate) const SCTP_SENDALL: u16 = 0x40;
pub(crate) const SCTP_EOF: u16 = 0x200;
pub(crate) const MSG_NOTIFICATION: c_int = 0x8000;
/// Values of SCTP_EXPOSE_POTENTIALLY_FAILED_STATE that hide the state, and that report changes to
/// it; it is 0 at first.
pub(crate) const HIDE_PF: u32 = 1;
pub(crate) const EXPOSE_PF: u32 = 2;

/// Types of control messages (`sctp_cmsg_t`).
pub(crate) const CMSG_INIT: c_int = 0;
pub(crate) const CMSG_SNDRCV: c_int = 1;
pub(crate) const CMSG_SNDINFO: c_int = 2;
pub(crate) const CMSG_RCVINFO: c_int = 3;
pub(crate) const CMSG_NXTINFO: c_int = 4;
pub(crate) const CMSG_PRINFO: c_int = 5;
pub(crate) const CMSG_AUTHINFO: c_int = 6;
pub(crate) const CMSG_DSTADDRV4: c_int = 7;
pub(crate) const CMSG_DSTADDRV6: c_int = 8;

/// Types of notifications, in the order of `sctp_event_subscribe`.
pub(crate) const DATA_IO_EVENT: u16 = 0x8000;
pub(crate) const ASSOC_CHANGE: u16 = 0x8001;
pub(crate) const PEER_ADDR_CHANGE: u16 = 0x8002;
pub(crate) const SEND_FAILED: u16 = 0x8003;
pub(crate) const REMOTE_ERROR: u16 = 0x8004;
pub(crate) const SHUTDOWN_EVENT: u16 = 0x8005;
pub(crate) const PARTIAL_DELIVERY_EVENT: u16 = 0x8006;
pub(crate) const ADAPTATION_INDICATION: u16 = 0x8007;
pub(crate) const AUTHENTICATION_EVENT: u16 = 0x8008;
pub(crate) const SENDER_DRY_EVENT: u16 = 0x8009;
pub(crate) const STREAM_RESET_EVENT: u16 = 0x800a;
pub(crate) const ASSOC_RESET_EVENT: u16 = 0x800b;
pub(crate) const STREAM_CHANGE_EVENT: u16 = 0x800c;
pub(crate) const SEND_FAILED_EVENT: u16 = 0x800d;
/// Number of fields of `sctp_event_subscribe`, each of which is one byte.
pub(crate) const EVENT_TYPES: usize = 14;

/// The name of an option.
pub(crate) fn name(option: c_int) -> String {
    match NAMES.iter().find(|(number, _)| *number == option) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("SCTP option {option}"),
    }
}
