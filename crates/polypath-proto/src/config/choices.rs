//! Parameters that are one of a few names.

use std::fmt;
use std::str::FromStr;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $text:literal, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )*
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
                        let allowed = [$( $text ),*].join(", ");
                        Err(format!("\"{text}\" is not known; allowed: {allowed}"))
                    }
                }
            }
        }
    };
}

choice! {
    /// When Max.Burst holds, and from where it counts (RFC 9260 6.1 D).
    BurstRule {
        /// From what is in flight after the SACK: the formula of RFC 9260 6.1 D. It rests on a SACK
        /// for every second packet; where one stands for many, it leaves the path idle.
        FlightSize = "flight-size",
        /// From what was in flight before the SACK: what it took out may be replaced, and Max.Burst
        /// packets more. Nearly the same where every second packet is acknowledged, and a receiver
        /// that reads many datagrams at once, with one SACK for all, still gets its rate.
        AckClocked = "ack-clocked",
        /// Max.Burst packets in answer to a SACK, once a chunk that was fast retransmitted has been
        /// cumulatively acknowledged, until the limit has been met: what ns-2's module does.
        AfterRetransmission = "after-retransmission",
        /// Max.Burst packets in answer to an event, new data and retransmissions: RFC 9260 6.1 D allows
        /// it to be applied "by strictly limiting the number of packets emitted on the output
        /// routine". The release of ns-2's module with which Qiao 2008 was written did so, by its
        /// figures.
        PacketCount = "packet-count",
    }
}

choice! {
    /// Which buffers are split between the paths of a concurrent multipath transfer, by what is outstanding
    /// on them (draft-tuexen-tsvwg-sctp-multipath, buffer splitting; Dreibholz and others 2010).
    BufferSplitting {
        /// None: each path takes what its window allows.
        Off = "off",
        /// The send buffer: new data leaves on a path while less than its part of it is outstanding there.
        Send = "send",
        /// The peer's receive buffer, likewise: what the peer announces and what is outstanding on all paths.
        Receive = "receive",
        /// Both.
        Both = "both",
    }
}

choice! {
    /// What the sender does where the RFC is open to reading.
    Procedures {
        /// As RFC 9260 is read here.
        Rfc9260 = "rfc9260",
        /// As the SCTP module of ns-2, with which the papers were written, reads RFC 2960 and 4960
        /// (see the source of `association::ns2` for each difference).
        Ns2 = "ns2",
    }
}

choice! {
    /// Whether data waits until the paths are confirmed (RFC 9260 5.4).
    PathConfirmation {
        /// Confirmed paths carry data while the others are being probed (RFC 9260 5.4).
        AlongsideData = "alongside-data",
        /// No new data before every path has answered a HEARTBEAT or has had its chances: releases
        /// 3.7 and 3.8 of ns-2's module.
        BeforeData = "before-data",
        /// Every path is used as it is, unconfirmed: releases before 3.7, and RFC 2960. Where the
        /// peer's addresses are not known to be its own, this lets it flood others.
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
