//! Counters, which never decrease (RFC 9260 11.1.8, STATUS).

/// Counters of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received and accepted.
    pub packets_received: u64,
    /// SCTP bytes sent, common headers included.
    pub bytes_sent: u64,
    /// SCTP bytes received in accepted packets, common headers included.
    pub bytes_received: u64,
    /// DATA chunks sent for the first time.
    pub data_chunks_sent: u64,
    /// User bytes sent for the first time.
    pub data_bytes_sent: u64,
    /// DATA chunks received, duplicates included.
    pub data_chunks_received: u64,
    /// User bytes received for the first time.
    pub data_bytes_received: u64,
    /// DATA chunks fast retransmitted to this path.
    pub fast_retransmissions: u64,
    /// DATA chunks retransmitted to this path after a timeout.
    pub timeout_retransmissions: u64,
    /// Copies of DATA chunks sent to this path while the first transmission was in flight.
    pub copies_sent: u64,
    /// User bytes of these copies.
    pub copy_bytes_sent: u64,
    /// Expirations of T3-rtx.
    pub timeouts: u64,
    /// Recoveries from losses or timeouts that turned out to be spurious, so that the window from
    /// before was restored.
    pub recoveries_undone: u64,
    /// Times at which the path was left because it did not answer, before a timeout, or because it
    /// lost too much.
    pub suspicions: u64,
    /// Those of them that late acknowledgements showed to be wrong.
    pub suspicions_undone: u64,
    /// HEARTBEATs sent.
    pub heartbeats_sent: u64,
    /// HEARTBEAT ACKs received for HEARTBEATs of this endpoint.
    pub heartbeats_acked: u64,
    /// HEARTBEATs not acknowledged within the RTO.
    pub heartbeats_lost: u64,
    /// Number of times that the path became inactive.
    pub failures: u64,
    /// Samples of the round-trip time.
    pub rtt_samples: u64,
    /// Received packets with data that were marked "congestion experienced", if ECN was agreed on.
    pub congestion_experienced: u64,
    /// Window reductions because of a marked packet (ECNE).
    pub congestion_notified: u64,
}

/// Counters of one association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationStats {
    /// Messages accepted by `send`.
    pub messages_sent: u64,
    /// Messages delivered to the application.
    pub messages_received: u64,
    /// User bytes delivered to the application.
    pub bytes_received: u64,
    /// DATA chunks received more than once.
    pub duplicates_received: u64,
    /// Unordered DATA chunks sent for the first time.
    pub unordered_chunks_sent: u64,
    /// Unordered DATA chunks received, duplicates included.
    pub unordered_chunks_received: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// Packets or chunks dropped as invalid, outdated or misplaced.
    pub dropped: u64,
    /// Chunks that the peer reneged on: gap-acknowledged, then no longer (RFC 9260 6.2.1).
    pub reneged: u64,
    /// Nanoseconds in which new data waited for the peer's receive buffer while an active path had
    /// nothing outstanding (receive-buffer blocking).
    pub nanoseconds_blocked: u64,
    /// DATA chunks dropped because the receive buffer was full.
    pub dropped_no_buffer: u64,
    /// Chunks dropped because they lacked the authentication that this side requires (RFC 4895
    /// 6.3).
    pub unauthenticated: u64,
    /// Packets whose chunks after AUTH were dropped because its key is unknown or its HMAC is
    /// wrong.
    pub bad_auth: u64,
    /// Echoed timestamps at which no packet can have been sent: in the future, or before the first.
    pub bad_echoes: u64,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams too short for SCTP, or otherwise malformed.
    pub malformed: u64,
    /// Packets with a wrong CRC32c (RFC 9260 6.8).
    pub bad_checksum: u64,
    /// Packets that belong to no association (RFC 9260 8.4).
    pub out_of_the_blue: u64,
    /// Packets with a wrong verification tag (RFC 9260 8.5).
    pub bad_tag: u64,
    /// State cookies with a wrong MAC.
    pub bad_cookies: u64,
    /// Expired state cookies.
    pub stale_cookies: u64,
    /// Associations refused because the endpoint was full or was not listening.
    pub refused: u64,
    /// Associations established.
    pub established: u64,
    /// Stateless replies dropped because too many were queued.
    pub replies_dropped: u64,
}
