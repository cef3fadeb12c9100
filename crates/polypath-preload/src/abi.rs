//! Numbers of Linux's SCTP (`linux/sctp.h`).

use std::ffi::c_int;

pub(crate) const IPPROTO_SCTP: c_int = 132;
/// Linux's default of SO_SNDBUF and SO_RCVBUF, and its limit for a message.
pub(crate) const BUFFER: c_int = 212_992;

pub(crate) const RTOINFO: c_int = 0;
pub(crate) const ASSOCINFO: c_int = 1;
pub(crate) const INITMSG: c_int = 2;
pub(crate) const NODELAY: c_int = 3;
pub(crate) const AUTOCLOSE: c_int = 4;
pub(crate) const PRIMARY_ADDR: c_int = 6;
pub(crate) const DISABLE_FRAGMENTS: c_int = 8;
pub(crate) const PEER_ADDR_PARAMS: c_int = 9;
pub(crate) const DEFAULT_SEND_PARAM: c_int = 10;
pub(crate) const EVENTS: c_int = 11;
pub(crate) const I_WANT_MAPPED_V4_ADDR: c_int = 12;
pub(crate) const MAXSEG: c_int = 13;
pub(crate) const STATUS: c_int = 14;
pub(crate) const GET_PEER_ADDR_INFO: c_int = 15;
pub(crate) const RECVRCVINFO: c_int = 32;
pub(crate) const DEFAULT_SNDINFO: c_int = 34;
pub(crate) const BINDX_ADD: c_int = 100;
pub(crate) const BINDX_REM: c_int = 101;
pub(crate) const GET_PEER_ADDRS: c_int = 108;
pub(crate) const GET_LOCAL_ADDRS: c_int = 109;
pub(crate) const CONNECTX: c_int = 110;
pub(crate) const CONNECTX3: c_int = 111;
pub(crate) const EVENT: c_int = 127;

/// Names of options, for the report.
pub(crate) const NAMES: &[(c_int, &str)] = &[
    (RTOINFO, "SCTP_RTOINFO"),
    (ASSOCINFO, "SCTP_ASSOCINFO"),
    (INITMSG, "SCTP_INITMSG"),
    (NODELAY, "SCTP_NODELAY"),
    (AUTOCLOSE, "SCTP_AUTOCLOSE"),
    (5, "SCTP_SET_PEER_PRIMARY_ADDR"),
    (PRIMARY_ADDR, "SCTP_PRIMARY_ADDR"),
    (7, "SCTP_ADAPTATION_LAYER"),
    (DISABLE_FRAGMENTS, "SCTP_DISABLE_FRAGMENTS"),
    (PEER_ADDR_PARAMS, "SCTP_PEER_ADDR_PARAMS"),
    (DEFAULT_SEND_PARAM, "SCTP_DEFAULT_SEND_PARAM"),
    (EVENTS, "SCTP_EVENTS"),
    (I_WANT_MAPPED_V4_ADDR, "SCTP_I_WANT_MAPPED_V4_ADDR"),
    (MAXSEG, "SCTP_MAXSEG"),
    (STATUS, "SCTP_STATUS"),
    (GET_PEER_ADDR_INFO, "SCTP_GET_PEER_ADDR_INFO"),
    (16, "SCTP_DELAYED_SACK"),
    (17, "SCTP_CONTEXT"),
    (18, "SCTP_FRAGMENT_INTERLEAVE"),
    (19, "SCTP_PARTIAL_DELIVERY_POINT"),
    (20, "SCTP_MAX_BURST"),
    (21, "SCTP_AUTH_CHUNK"),
    (22, "SCTP_HMAC_IDENT"),
    (23, "SCTP_AUTH_KEY"),
    (24, "SCTP_AUTH_ACTIVE_KEY"),
    (25, "SCTP_AUTH_DELETE_KEY"),
    (26, "SCTP_PEER_AUTH_CHUNKS"),
    (27, "SCTP_LOCAL_AUTH_CHUNKS"),
    (28, "SCTP_GET_ASSOC_NUMBER"),
    (29, "SCTP_GET_ASSOC_ID_LIST"),
    (30, "SCTP_AUTO_ASCONF"),
    (31, "SCTP_PEER_ADDR_THLDS"),
    (RECVRCVINFO, "SCTP_RECVRCVINFO"),
    (33, "SCTP_RECVNXTINFO"),
    (DEFAULT_SNDINFO, "SCTP_DEFAULT_SNDINFO"),
    (36, "SCTP_REUSE_PORT"),
    (BINDX_ADD, "SCTP_SOCKOPT_BINDX_ADD"),
    (BINDX_REM, "SCTP_SOCKOPT_BINDX_REM"),
    (102, "SCTP_SOCKOPT_PEELOFF"),
    (GET_PEER_ADDRS, "SCTP_GET_PEER_ADDRS"),
    (GET_LOCAL_ADDRS, "SCTP_GET_LOCAL_ADDRS"),
    (CONNECTX, "SCTP_SOCKOPT_CONNECTX"),
    (CONNECTX3, "SCTP_SOCKOPT_CONNECTX3"),
    (112, "SCTP_GET_ASSOC_STATS"),
    (113, "SCTP_PR_SUPPORTED"),
    (114, "SCTP_DEFAULT_PRINFO"),
    (118, "SCTP_ENABLE_STREAM_RESET"),
    (119, "SCTP_RESET_STREAMS"),
    (121, "SCTP_ADD_STREAMS"),
    (123, "SCTP_STREAM_SCHEDULER"),
    (EVENT, "SCTP_EVENT"),
];

pub(crate) const SCTP_UNORDERED: u16 = 1;
pub(crate) const SCTP_ADDR_OVER: u16 = 2;
pub(crate) const SCTP_ABORT: u16 = 4;
pub(crate) const SCTP_SACK_IMMEDIATELY: u16 = 8;
pub(crate) const SCTP_PR_SCTP_TTL: u16 = 0x10;
pub(crate) const SCTP_PR_SCTP_RTX: u16 = 0x20;
pub(crate) const SCTP_PR_SCTP_PRIO: u16 = 0x30;
pub(crate) const SCTP_EOF: u16 = 0x200;
pub(crate) const MSG_NOTIFICATION: c_int = 0x8000;

/// Types of control messages (`sctp_cmsg_t`).
pub(crate) const CMSG_SNDRCV: c_int = 1;
pub(crate) const CMSG_SNDINFO: c_int = 2;
pub(crate) const CMSG_RCVINFO: c_int = 3;
pub(crate) const CMSG_PRINFO: c_int = 5;

/// Types of notifications, in the order of `sctp_event_subscribe`.
pub(crate) const DATA_IO_EVENT: u16 = 0x8000;
pub(crate) const ASSOC_CHANGE: u16 = 0x8001;
pub(crate) const PEER_ADDR_CHANGE: u16 = 0x8002;
pub(crate) const SHUTDOWN_EVENT: u16 = 0x8005;
/// Number of fields of `sctp_event_subscribe`, each of which is one byte.
pub(crate) const EVENT_TYPES: usize = 14;
/// Types of notifications that are never generated.
pub(crate) const MISSING_EVENTS: &[(usize, &str)] = &[
    (3, "SCTP_SEND_FAILED"),
    (4, "SCTP_REMOTE_ERROR"),
    (6, "SCTP_PARTIAL_DELIVERY_EVENT"),
    (7, "SCTP_ADAPTATION_INDICATION"),
    (8, "SCTP_AUTHENTICATION_EVENT"),
    (9, "SCTP_SENDER_DRY_EVENT"),
    (10, "SCTP_STREAM_RESET_EVENT"),
    (11, "SCTP_ASSOC_RESET_EVENT"),
    (12, "SCTP_STREAM_CHANGE_EVENT"),
    (13, "SCTP_SEND_FAILED_EVENT"),
];

/// The name of an option.
pub(crate) fn name(option: c_int) -> String {
    match NAMES.iter().find(|(number, _)| *number == option) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("SCTP option {option}"),
    }
}
