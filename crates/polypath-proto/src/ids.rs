//! Newtypes for the numbers of the protocol, so that they cannot be confused.

use std::cmp::Ordering;
use std::fmt;

/// Serial number arithmetic (RFC 1982, RFC 9260 1.6): comparison modulo the width of the number.
macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $int:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $int);

        impl $name {
            /// The number `n` after this one, wrapping.
            #[must_use]
            pub const fn plus(self, n: $int) -> Self {
                Self(self.0.wrapping_add(n))
            }

            /// The number after this one, wrapping.
            #[must_use]
            pub const fn next(self) -> Self {
                self.plus(1)
            }

            /// The number before this one, wrapping.
            #[must_use]
            pub const fn prev(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            /// The distance from `base` up to this number, wrapping.
            pub const fn offset_from(self, base: Self) -> $int {
                self.0.wrapping_sub(base.0)
            }

            /// Serial comparison: `Less` if `other` is in the half circle above this number.
            pub fn serial_cmp(self, other: Self) -> Ordering {
                (self.0.wrapping_sub(other.0) as $signed).cmp(&0)
            }

            /// This number comes before `other`.
            pub fn is_before(self, other: Self) -> bool {
                self.serial_cmp(other) == Ordering::Less
            }

            /// This number comes after `other`.
            pub fn is_after(self, other: Self) -> bool {
                self.serial_cmp(other) == Ordering::Greater
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

serial!(
    /// Transmission Sequence Number: one for each DATA chunk of an association's direction.
    Tsn, u32, i32
);
serial!(
    /// Stream Sequence Number: one for each ordered message of a stream.
    Ssn, u16, i16
);

serial!(
    /// Message Identifier: one for each ordered and for each unordered message of a stream
    /// (RFC 8260 2.1). In DATA chunks its lower half is the stream sequence number.
    Mid, u32, i32
);

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Stream identifier, counted from 0 in each direction.
    StreamId, u16
);
number!(
    /// Payload protocol identifier: set by the application and delivered unchanged.
    Ppid, u32
);
number!(
    /// Verification tag of one direction of an association (RFC 9260 8.5).
    VerificationTag, u32
);
number!(
    /// A path of an association: a pair of local and remote address, counted from 0 in the order in
    /// which the paths were added. The number remains valid for the lifetime of the association.
    PathId, u8
);
number!(
    /// An association of an `Endpoint`. The number is not reused after the association has ended.
    AssociationId, u64
);

impl PathId {
    /// The path's index in a list of all paths.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_comparison_wraps() {
        assert!(Tsn(u32::MAX).is_before(Tsn(0)));
        assert!(Tsn(5).is_after(Tsn(u32::MAX - 5)));
        assert!(!Tsn(7).is_before(Tsn(7)));
        assert_eq!(Tsn(2).offset_from(Tsn(u32::MAX)), 3);
        assert!(Ssn(u16::MAX).is_before(Ssn(0)));
        assert_eq!(Ssn(u16::MAX).next(), Ssn(0));
    }
}
