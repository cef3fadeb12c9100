//! Keys of a scenario, such as `path[0].forward.delay`.

use std::fmt;

/// A dotted key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Field(String),
    Index(usize),
}

impl Key {
    /// The key of the scenario itself.
    pub(crate) const fn root() -> Self {
        Self(Vec::new())
    }

    /// The key of a field of this table.
    pub(crate) fn field(&self, name: &str) -> Self {
        let mut key = self.clone();
        key.0.push(Segment::Field(name.to_owned()));
        key
    }

    /// The key of an element of this array, counted from 0.
    pub(crate) fn index(&self, index: usize) -> Self {
        let mut key = self.clone();
        key.0.push(Segment::Index(index));
        key
    }

    /// The same key, with `segment` prepended.
    pub(super) fn under(mut self, segment: Segment) -> Self {
        self.0.insert(0, segment);
        self
    }

    /// Changes the index of the element if the outermost array is `array`.
    pub(super) fn renumber(&mut self, array: &str, number: impl Fn(usize) -> usize) {
        if let [Segment::Field(name), Segment::Index(index), ..] = self.0.as_mut_slice()
            && name == array
        {
            *index = number(*index);
        }
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if i == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
