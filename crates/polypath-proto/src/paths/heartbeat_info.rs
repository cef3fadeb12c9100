//! The information in a HEARTBEAT, which its answer returns unchanged (RFC 9260 3.3.5, 5.4, 8.3).

use super::Paths;
use crate::ids::PathId;
use crate::path::PacketPair;
use crate::rng::{hmac, hmac_verify_truncated};
use crate::time::Time;
use crate::wire::CHUNK_HEADER_LEN;

/// Bytes of a HEARTBEAT's information: path and instant, and a signature over them (RFC 9260 5.4:
/// "a 64-bit random nonce"). The path takes one byte, the instant seven, which is enough for 834
/// days; a HEARTBEAT has 56 bytes with its IPv4 header, as in the papers.
pub(crate) const INFO_LEN: usize = 8 + 8;

/// Bytes of a HEARTBEAT chunk, its parameter included (RFC 9260 3.3.5).
pub(crate) const HEARTBEAT_CHUNK_LEN: usize = 2 * CHUNK_HEADER_LEN + INFO_LEN;

/// Purpose of a HEARTBEAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeartbeatKind {
    /// Watching the path.
    Plain,
    /// The small packet of a probe for the path's MTU, and the large one.
    SmallProbe,
    LargeProbe,
}

/// Bits of the path's byte that encode the kind: there are at most 64 paths.
const KINDS: u8 = 0b1100_0000;
const SMALL_PROBE: u8 = 0b1000_0000;
const LARGE_PROBE: u8 = KINDS;

/// Range of a seven-byte instant in nanoseconds.
const SPAN: u64 = 1 << 56;

/// Writes and verifies the information of one association's HEARTBEATs.
#[derive(Debug)]
pub(crate) struct HeartbeatInfo {
    key: [u8; 32],
}

impl HeartbeatInfo {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// Information of a HEARTBEAT on `path` that was requested at `sent`.
    pub(crate) fn write(&self, kind: HeartbeatKind, path: PathId, sent: Time) -> [u8; INFO_LEN] {
        let mut info = [0; INFO_LEN];
        info[..8].copy_from_slice(&sent.as_nanos().to_be_bytes());
        info[0] = path.0
            | match kind {
                HeartbeatKind::Plain => 0,
                HeartbeatKind::SmallProbe => SMALL_PROBE,
                HeartbeatKind::LargeProbe => LARGE_PROBE,
            };
        let mac = hmac(&self.key, &[&info[..8]]);
        info[8..].copy_from_slice(&mac[..8]);
        info
    }

    /// Path, time and kind of the HEARTBEAT that this information was written for; `None` if it is
    /// not this association's.
    pub(crate) fn read(&self, now: Time, info: &[u8]) -> Option<(PathId, Time, HeartbeatKind)> {
        // The rest is padding.
        let info: &[u8; INFO_LEN] = info.first_chunk()?;
        if !hmac_verify_truncated(&self.key, &[&info[..8]], &info[8..]) {
            return None;
        }
        let path = PathId(info[0] & !KINDS);
        let kind = match info[0] & KINDS {
            0 => HeartbeatKind::Plain,
            SMALL_PROBE => HeartbeatKind::SmallProbe,
            _ => HeartbeatKind::LargeProbe,
        };
        // The latest instant up to now with these seven low bytes.
        let low = u64::from_be_bytes(info[..8].try_into().ok()?) % SPAN;
        let now = now.as_nanos();
        let high = now - now % SPAN;
        let nanos = if high + low <= now { high + low } else { (high + low).checked_sub(SPAN)? };
        Some((path, Time::from_nanos(nanos), kind))
    }
}

impl Paths {
    /// Information of a HEARTBEAT on `path` that is sent now.
    pub(crate) fn heartbeat(&self, now: Time, path: PathId) -> [u8; INFO_LEN] {
        self.heartbeat_info.write(HeartbeatKind::Plain, path, now)
    }

    /// Information of a HEARTBEAT of a packet pair, padded to the path's largest packet, of which
    /// `taken` bytes are used otherwise.
    pub(crate) fn paired_heartbeat(
        &self,
        now: Time,
        path: PathId,
        second: bool,
        taken: usize,
    ) -> Vec<u8> {
        let sent = if second { PacketPair::mark(now) } else { now };
        let room = self[path].max_packet() - taken;
        let mut info = self.heartbeat(sent, path).to_vec();
        info.resize(room.max(INFO_LEN), 0);
        info
    }
}
