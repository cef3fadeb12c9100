//! Iterates type-length-value lists: the chunks of a packet, the parameters of a chunk, and error
//! causes.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! | Type (of a chunk: and flags)  |            Length             |
//! +-------------------------------+-------------------------------+
//! \                             Value                             \
//! +---------------------------------------------------------------+
//! ```
//!
//! Chunks (RFC 9260 3.2), parameters (3.2.1) and error causes (3.3.10) have the same rules, here in
//! the words of 3.2.1:
//!
//! - "The Parameter Length field contains the size of the parameter in bytes, including the
//!   Parameter Type, Parameter Length, and Parameter Value fields. Thus, a parameter with a
//!   zero-length Parameter Value field would have a Parameter Length field of 4." A shorter length
//!   is invalid.
//! - "The total length of a parameter (including Parameter Type, Parameter Length, and Parameter
//!   Value fields) MUST be a multiple of 4 bytes. If the length of the parameter is not a multiple
//!   of 4 bytes, the sender pads the parameter at the end (i.e., after the Parameter Value field)
//!   with all zero bytes. The length of the padding is not included in the Parameter Length field."
//! - "The receiver MUST ignore the padding bytes." After the last parameter they may be absent: "A
//!   robust implementation is expected to accept the chunk whether or not the final padding has
//!   been included in the Chunk Length" (3.2).

use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::codec::{TLV_HEADER_LEN, after, padded, u16_at};

/// One element of a list, not yet parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// Type and length, the first bytes of `raw`.
    pub(super) head: [u8; TLV_HEADER_LEN],
    /// The complete element: type, length and value, without padding.
    pub(super) raw: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// The type of a parameter, or the code of a cause.
    pub(super) const fn ty(&self) -> u16 {
        u16_at(&self.head, 0)
    }

    /// The bytes after type and length.
    pub(super) fn value(&self) -> &'a [u8] {
        after(self.raw, TLV_HEADER_LEN)
    }
}

/// An element of a type-length-value list.
pub trait Element<'a>: Sized {
    /// The error in one element.
    type Error;

    /// Parses an element whose length is valid.
    fn parse(tlv: Tlv<'a>) -> Result<Self, Self::Error>;

    /// The error for a length that is less than four or exceeds the list. `rest` is the rest of the
    /// list from the first byte of the element.
    fn bad_length(rest: &'a [u8]) -> Self::Error;
}

/// The error is the rest of the list from the first byte of the element.
impl<'a> Element<'a> for Tlv<'a> {
    type Error = &'a [u8];

    #[inline]
    fn parse(tlv: Self) -> Result<Self, &'a [u8]> {
        Ok(tlv)
    }

    fn bad_length(rest: &'a [u8]) -> &'a [u8] {
        rest
    }
}

/// Iterates the elements of a list, in order.
///
/// A malformed element with a valid length is an `Err`, and the next item is the element after it.
/// An invalid length is the last item, because the start of the next element is unknown.
#[derive(Clone, Debug)]
pub struct Elements<'a, E> {
    rest: &'a [u8],
    element: PhantomData<fn() -> E>,
}

impl<'a, E> Elements<'a, E> {
    #[inline]
    pub(super) const fn new(list: &'a [u8]) -> Self {
        Self { rest: list, element: PhantomData }
    }

    /// The bytes of all elements that have not been returned yet.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a, E: Element<'a>> Iterator for Elements<'a, E> {
    type Item = Result<E, E::Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest;
        if rest.is_empty() {
            return None;
        }
        if let Some(&head) = rest.first_chunk::<TLV_HEADER_LEN>() {
            let len = usize::from(u16_at(&head, 2));
            if let (TLV_HEADER_LEN.., Some(raw)) = (len, rest.get(..len)) {
                self.rest = after(rest, padded(len));
                return Some(E::parse(Tlv { head, raw }));
            }
        }
        self.rest = &[];
        Some(Err(E::bad_length(rest)))
    }
}

impl<'a, E: Element<'a>> FusedIterator for Elements<'a, E> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types and values of the elements of a list without errors.
    fn elements(list: &[u8]) -> Vec<(u16, &[u8])> {
        let elements = Elements::<Tlv<'_>>::new(list);
        elements.map(|tlv| tlv.map(|tlv| (tlv.ty(), tlv.value())).unwrap()).collect()
    }

    #[test]
    fn padding_after_the_last_element_is_optional() {
        for end in [9, 10, 11, 12] {
            let list = &[0, 1, 0, 4, 0, 2, 0, 5, 0xaa, 0, 0, 0][..end];
            assert_eq!(elements(list), [(1, &[][..]), (2, &[0xaa])]);
        }
    }

    #[test]
    fn padding_is_ignored() {
        let list = [0, 1, 0, 5, 0xaa, 1, 2, 3, 0, 2, 0, 4];
        assert_eq!(elements(&list), [(1, &[0xaa][..]), (2, &[])]);
        let mut rest = Elements::<Tlv<'_>>::new(&list);
        assert_eq!(rest.next().unwrap().unwrap().raw, [0, 1, 0, 5, 0xaa]);
        assert_eq!(rest.as_bytes(), [0, 2, 0, 4]);
    }

    #[test]
    fn an_invalid_length_is_the_last_item() {
        let lists: [&[u8]; 5] =
            [&[0, 1, 0, 3, 0, 2, 0, 4], &[0, 1, 0, 9, 0, 2, 0, 4], &[0, 1, 0, 0], &[0, 1, 0], &[0]];
        for list in lists {
            let mut elements = Elements::<Tlv<'_>>::new(list);
            assert_eq!(elements.next(), Some(Err(list)));
            assert_eq!(elements.as_bytes(), [0; 0]);
            assert_eq!(elements.next(), None);
        }
    }
}
