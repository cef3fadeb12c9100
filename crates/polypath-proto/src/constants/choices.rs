//! Parameters whose values are names from a fixed list.

use std::fmt;
use std::str::FromStr;

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
                    _ => {
                        let allowed = Self::NAMES.join(", ");
                        Err(format!("\"{text}\" is not known; allowed: {allowed}"))
                    }
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
        /// retransmitted chunk until the limit is reached: the rule of the ns-2 module.
        AfterRetransmission = "after-retransmission",
        /// Max.Burst packets in response to an event, new data and retransmissions together:
        /// RFC 9260 6.1 D permits "strictly limiting the number of packets emitted on the output
        /// routine". Judging by its figures, Qiao 2008 used a release of the ns-2 module with this
        /// rule.
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

choice! {
    /// Sender procedures where the RFC leaves room for interpretation.
    Procedures {
        /// This crate's reading of RFC 9260.
        Rfc9260 = "rfc9260",
        /// The reading of RFC 2960 and 4960 in the SCTP module of ns-2, which the papers used (the
        /// source of `association::procedures::ns2` lists each difference).
        Ns2 = "ns2",
    }
}

choice! {
    /// Whether data waits until the paths are confirmed (RFC 9260 5.4).
    PathConfirmation {
        /// Confirmed paths carry data while the others are being probed (RFC 9260 5.4).
        AlongsideData = "alongside-data",
        /// No new data before every path has acknowledged a HEARTBEAT or has exhausted its probes:
        /// releases 3.7 and 3.8 of the ns-2 module.
        BeforeData = "before-data",
        /// Paths are used without confirmation: releases before 3.7, and RFC 2960. If the peer's
        /// addresses are not known to be its own, this lets it flood third parties.
        Off = "off",
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
