//! A set of chunk types.

use std::fmt;
use std::str::FromStr;

use crate::wire::chunk_type;

/// A set of chunk types, such as those accepted only if authenticated.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ChunkTypes([u64; 4]);

impl ChunkTypes {
    /// The empty set.
    pub const NONE: Self = Self([0; 4]);

    /// The set of `types` without INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH, which cannot be
    /// authenticated (RFC 4895 3.2).
    pub fn authenticated(types: &[u8]) -> Self {
        let mut set = Self::NONE;
        for &ty in types {
            let never = matches!(
                ty,
                chunk_type::INIT
                    | chunk_type::INIT_ACK
                    | chunk_type::SHUTDOWN_COMPLETE
                    | chunk_type::AUTH
            );
            if !never {
                set.0[usize::from(ty / 64)] |= 1 << (ty % 64);
            }
        }
        set
    }

    /// Whether the set contains `ty`.
    pub const fn contains(self, ty: u8) -> bool {
        self.0[(ty / 64) as usize] & (1 << (ty % 64)) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// The members in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |&ty| self.contains(ty))
    }

    /// The union of both sets.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

/// The notation of configurations: names in lower case with hyphens, or numbers, separated by
/// commas; "none" for the empty set.
impl fmt::Display for ChunkTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (i, ty) in self.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            match chunk_type::name(ty) {
                Some(name) => f.write_str(&written(name))?,
                None => write!(f, "{ty}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ChunkTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn written(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

impl FromStr for ChunkTypes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut types = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| *word != "none") {
            let named = (0..=u8::MAX)
                .find(|&ty| chunk_type::name(ty).map(written).as_deref() == Some(word));
            let ty = named.or_else(|| word.parse().ok());
            let ty = ty.filter(|ty| !Self::authenticated(&[*ty]).is_empty());
            types.push(ty.ok_or_else(|| {
                format!(
                    "\"{word}\" is no type of chunk that can be authenticated; \
                     such are data, sack, heartbeat, abort, cookie-echo, or their numbers"
                )
            })?);
        }
        Ok(Self::authenticated(&types))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_and_read() {
        for types in [&[][..], &[0], &[0, 10, 128, 193], &[99]] {
            let set = ChunkTypes::authenticated(types);
            assert!(set.iter().eq(types.iter().copied()));
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        let set: ChunkTypes = "cookie-echo, data".parse().unwrap();
        assert_eq!(set.to_string(), "data,cookie-echo");
        assert!("init".parse::<ChunkTypes>().is_err() && "dada".parse::<ChunkTypes>().is_err());
        assert!(
            "".parse::<ChunkTypes>().is_err() && "none".parse::<ChunkTypes>().unwrap().is_empty()
        );
    }

    /// RFC 4895 3.2.
    #[test]
    fn what_cannot_be_authenticated_is_left_out() {
        assert!(ChunkTypes::authenticated(&[1, 2, 14, 15]).is_empty());
    }
}
