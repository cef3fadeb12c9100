//! Counters; they only rise.

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
    /// Expirations of T3-rtx.
    pub timeouts: u64,
    /// Of these, the second in a row: without a sign of life of the path in between.
    pub second_timeouts: u64,
    /// The third in a row.
    pub third_timeouts: u64,
    /// The fourth in a row.
    pub fourth_timeouts: u64,
    /// The fifth in a row.
    pub fifth_timeouts: u64,
    /// HEARTBEATs sent.
    pub heartbeats_sent: u64,
    /// HEARTBEAT ACKs received that answered one of ours.
    pub heartbeats_acked: u64,
    /// HEARTBEATs that were not answered within the RTO.
    pub heartbeats_lost: u64,
    /// Times that the path became inactive.
    pub failures: u64,
    /// Samples of the round-trip time.
    pub rtt_samples: u64,
    /// Packets with data received that came marked with congestion experienced, if ECN was agreed on.
    pub congestion_experienced: u64,
    /// Reductions of the window because a packet was marked (ECNE).
    pub congestion_notified: u64,
}

/// Counters of one association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationStats {
    /// Messages that `send` took.
    pub messages_sent: u64,
    /// Messages handed to the application.
    pub messages_received: u64,
    /// User bytes handed to the application.
    pub bytes_received: u64,
    /// DATA chunks that arrived a second time.
    pub duplicates_received: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// Packets or chunks dropped because they were wrong, old or out of place.
    pub dropped: u64,
    /// Chunks that had been gap-acknowledged and no longer were (RFC 9260 6.2.1).
    pub reneged: u64,
    /// Nanoseconds for which new data waited for the peer's receive buffer and nothing was outstanding on
    /// an active path (receive-buffer blocking).
    pub nanoseconds_blocked: u64,
    /// DATA chunks dropped because the receive buffer was full.
    pub dropped_no_buffer: u64,
    /// Chunks dropped because they were not authenticated, as this side had asked (RFC 4895 6.3).
    pub unauthenticated: u64,
    /// Packets of which what follows the AUTH chunk was dropped, for its key was unknown or its code wrong.
    pub bad_auth: u64,
    /// Echoes of timestamps at which nothing can have been sent: of the future, or before the first.
    pub bad_echoes: u64,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams too short or otherwise not SCTP.
    pub malformed: u64,
    /// Packets with a wrong CRC32c (RFC 9260 6.8).
    pub bad_checksum: u64,
    /// Packets that belong to no association (RFC 9260 8.4).
    pub out_of_the_blue: u64,
    /// Packets with a verification tag that is not ours (RFC 9260 8.5).
    pub bad_tag: u64,
    /// State cookies with a wrong signature.
    pub bad_cookies: u64,
    /// State cookies that came too late.
    pub stale_cookies: u64,
    /// Associations refused because the endpoint was full or not listening.
    pub refused: u64,
    /// Associations established.
    pub established: u64,
    /// Stateless replies not sent because too many were waiting.
    pub replies_dropped: u64,
}
