//! Parameters whose values are names from a fixed list.

use std::fmt;
use std::str::FromStr;

use crate::{SENDERS, SenderModel};

fn unknown(text: &str, names: &[&str]) -> String {
    format!("\"{text}\" is not known; allowed: {}", names.join(", "))
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $text:literal, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )*
        }

        impl $name {
            /// The name of every value.
            pub const NAMES: &[&str] = &[$( $text ),*];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $( Self::$variant => $text, )*
                })
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $( $text => Ok(Self::$variant), )*
                    _ => Err(unknown(text, Self::NAMES)),
                }
            }
        }
    };
}

choice! {
    /// When Max.Burst applies, and its reference point (RFC 9260 6.1 D).
    BurstRule {
        /// Counted from the flight size after the SACK: the formula of RFC 9260 6.1 D. It assumes a
        /// SACK for every second packet; if one SACK acknowledges many packets, the path idles.
        FlightSize = "flight-size",
        /// Counted from the flight size before the SACK: the sender may replace the acknowledged
        /// data and add Max.Burst packets. This is nearly the same if every second packet is
        /// acknowledged, and keeps the rate up for a receiver that reads many datagrams at once and
        /// acknowledges them with one SACK.
        AckClocked = "ack-clocked",
        /// Max.Burst packets in response to a SACK, from the cumulative acknowledgement of a fast
        /// retransmitted chunk until the limit is reached: what the papers' simulator does.
        AfterRetransmission = "after-retransmission",
        /// Max.Burst packets in response to an event, new data and retransmissions together:
        /// RFC 9260 6.1 D permits "strictly limiting the number of packets emitted on the output
        /// routine". Judging by its figures, Qiao 2008 used a simulator with this rule.
        PacketCount = "packet-count",
    }
}

choice! {
    /// Which buffers are split between the paths in CMT, by the outstanding bytes of each path
    /// (draft-tuexen-tsvwg-sctp-multipath, buffer splitting; Dreibholz and others 2010).
    BufferSplitting {
        /// None: only the congestion window limits a path.
        Off = "off",
        /// The send buffer: a path sends new data while its outstanding bytes are below its share.
        Send = "send",
        /// The peer's receive buffer, likewise: the announced a_rwnd plus the outstanding bytes of
        /// all paths.
        Receive = "receive",
        /// Both.
        Both = "both",
    }
}

/// Sender procedures where the RFC leaves room for interpretation, of one of the senders in this
/// build.
#[derive(Clone, Copy)]
pub struct Procedures(&'static SenderModel);

impl Procedures {
    /// This crate's reading of RFC 9260.
    pub const RFC9260: Self = Self::of(SENDERS[0]);

    /// The name of every value.
    pub const NAMES: &[&str] = &{
        let mut names = [""; SENDERS.len()];
        let mut i = 0;
        while i < SENDERS.len() {
            names[i] = SENDERS[i].name;
            i += 1;
        }
        names
    };

    pub(crate) const fn of(sender: &'static SenderModel) -> Self {
        Self(sender)
    }

    pub(crate) const fn sender(self) -> &'static SenderModel {
        self.0
    }
}

/// The name identifies them.
impl PartialEq for Procedures {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Procedures {}

impl fmt::Debug for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl FromStr for Procedures {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = SENDERS.iter().find(|sender| sender.name == text);
        found.map(|sender| Self(sender)).ok_or_else(|| unknown(text, Self::NAMES))
    }
}

choice! {
    /// Whether data waits until the paths are confirmed (RFC 9260 5.4).
    PathConfirmation {
        /// Confirmed paths carry data while the others are being probed (RFC 9260 5.4).
        AlongsideData = "alongside-data",
        /// No new data before every path has acknowledged a HEARTBEAT or has exhausted its probes:
        /// the later releases of the papers' simulator.
        BeforeData = "before-data",
        /// Paths are used without confirmation: its earlier releases, and RFC 2960. If the peer's
        /// addresses are not known to be its own, this lets it flood third parties.
        Off = "off",
    }
}

choice! {
    /// How the messages of an association are sent, unless a stream or a message differs. With a
    /// `scheduler` that uses one path at a time, every value is `standard`.
    #[derive(Default)]
    Delivery {
        /// As the scheduler decides, for the highest rate.
        #[default]
        Standard = "standard",
        /// On the path that is expected to deliver first, and again where a message is overdue.
        Earliest = "earliest",
        /// Like `earliest`, in several copies at once, within a budget.
        Redundant = "redundant",
    }
}

impl Delivery {
    /// Whether messages are sent on the path that delivers first.
    pub const fn is_urgent(self) -> bool {
        !matches!(self, Self::Standard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_wrong_ones_name_the_allowed() {
        for rule in [
            BurstRule::FlightSize,
            BurstRule::AckClocked,
            BurstRule::AfterRetransmission,
            BurstRule::PacketCount,
        ] {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        let wrong = "later".parse::<PathConfirmation>();
        assert_eq!(
            wrong,
            Err("\"later\" is not known; allowed: alongside-data, before-data, off".into())
        );
    }
}
