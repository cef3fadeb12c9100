//! Limit of the queue in front of a link.

use std::fmt;
use std::str::FromStr;

use super::quantity::Size;
use super::{UnitError, serde_as_text};

/// Limit of a drop-tail queue: "50 packets", "64 KiB" or "unlimited".
///
/// The packet that is being transmitted has left the queue and does not count (as in ns-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// At most this many packets wait.
    Packets(u32),
    /// At most this many bytes wait, IP headers included.
    Bytes(u64),
    /// No packet is dropped because of the queue.
    Unlimited,
}

impl Default for QueueLimit {
    /// 50 packets, the default of ns-2.
    fn default() -> Self {
        Self::Packets(50)
    }
}

const ALLOWED: &str = "\"50 packets\", a size such as \"64 KiB\", or \"unlimited\"";

impl FromStr for QueueLimit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let packets =
            text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")).map(str::trim_end);
        let limit = match packets {
            Some(number) => number.parse().ok().map(Self::Packets),
            None if text == "unlimited" => Some(Self::Unlimited),
            None => text.parse::<Size>().ok().map(|size| Self::Bytes(size.0)),
        };
        limit.ok_or_else(|| UnitError {
            text: text.to_owned(),
            what: "a queue limit",
            allowed: ALLOWED,
        })
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(1) => f.write_str("1 packet"),
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(n) => Size(*n).fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

serde_as_text!(QueueLimit, "\"50 packets\", a size such as \"64 KiB\", or \"unlimited\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for text in ["50 packets", "1 packet", "64 KiB", "unlimited"] {
            assert_eq!(text.parse::<QueueLimit>().unwrap().to_string(), text);
        }
        assert!("50".parse::<QueueLimit>().is_err());
        assert!("-3 packets".parse::<QueueLimit>().is_err());
    }
}
