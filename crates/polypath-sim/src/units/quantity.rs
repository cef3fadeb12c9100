//! Rates, sizes and spans of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use polypath_proto::quantity::{SIZE, TIME, Units};

use super::{UnitError, serde_as_text};

/// The units of rates, in bits per second.
const RATE: Units = Units {
    what: "a rate",
    notation: "a number and bit/s, kbit/s, Mbit/s or Gbit/s, such as \"10 Mbit/s\"",
    read: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    written: &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)],
};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $units:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $units.read(text).map(Self).ok_or_else(|| UnitError {
                    text: text.to_owned(),
                    what: $units.what,
                    allowed: $units.notation,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&$units.write(self.0))
            }
        }

        serde_as_text!($name, $units.notation);
    };
}

quantity!(
    /// A rate in bits per second: "10 Mbit/s".
    Rate, RATE
);

quantity!(
    /// A number of bytes: "64 KiB" is 65,536, "80 MB" is 80,000,000.
    Size, SIZE
);

quantity!(
    /// A span of time in nanoseconds: "45 ms".
    Span, TIME
);

impl Rate {
    /// This many bits per second.
    pub const fn bits_per_second(n: u64) -> Self {
        Self(n)
    }

    /// This many 10^6 bits per second.
    pub const fn mbit(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// Transmission time of `bytes` bytes, rounded up to a nanosecond so that the rate is never
    /// exceeded.
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Duration {
        // Packets are below 2^17 bytes: 2^17 * 8 * 10^9 fits in 64 bits.
        match self.0 {
            0 => Duration::MAX,
            rate if bytes <= 1 << 17 => {
                Duration::from_nanos((bytes * 8_000_000_000).div_ceil(rate))
            }
            rate => {
                let nanos = (bytes as u128 * 8_000_000_000).div_ceil(rate as u128);
                Duration::from_nanos(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
            }
        }
    }
}

impl Span {
    /// This many milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// This many seconds.
    pub const fn secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// The span as a [`Duration`].
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("10 Mbit/s".parse(), Ok(Rate::mbit(10)));
        assert_eq!("1.5Mbit/s".parse(), Ok(Rate(1_500_000)));
        assert_eq!("45 ms".parse(), Ok(Span::millis(45)));
        assert_eq!("0 s".parse(), Ok(Span(0)));
        assert_eq!("64 KiB".parse(), Ok(Size(65_536)));
        assert_eq!("4 MB".parse(), Ok(Size(4_000_000)));
        assert_eq!("4 MiB".parse(), Ok(Size(4 << 20)));
    }

    #[test]
    fn refuses_the_rest_and_says_what_is_allowed() {
        for wrong in ["10", "10 Mbps", "ten Mbit/s", "-1 Mbit/s", "1.5 bit/s", "", "Mbit/s"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
        let error = "10 Mb".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"10 Mb\" is not a rate; allowed: a number and bit/s, kbit/s, Mbit/s or Gbit/s, \
             such as \"10 Mbit/s\""
        );
    }

    #[test]
    fn prints_what_it_reads() {
        for text in ["10 Mbit/s", "1500 kbit/s", "0 bit/s", "1 bit/s", "3 Gbit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["45 ms", "1 min", "90 s", "1 ns", "0 ns"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["64 KiB", "80 MB", "80 MiB", "1500 B", "0 B"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn transmission_time_rounds_up() {
        assert_eq!(Rate::mbit(10).time_for(1500), Duration::from_micros(1200));
        assert_eq!(Rate(3).time_for(1), Duration::from_nanos(2_666_666_667));
        assert_eq!(Rate(8_000_000_000).time_for(1 << 20), Duration::from_nanos(1 << 20));
    }
}
