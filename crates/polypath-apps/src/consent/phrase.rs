//! Code phrases: short texts that people pass on by voice.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Random bytes of a phrase: 48 bits.
const BYTES: usize = 6;
/// Minimum number of characters of a phrase that a person has chosen.
const LEAST: usize = 8;
/// Maximum number of characters.
const MOST: usize = 1024;

/// Sounds of proquints (Wilkerson, "A Proposal for Proquints", 2009): 16 bits are five letters.
const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 4] = b"aiou";

/// A code phrase, or a secret that both sides share.
#[derive(Clone, PartialEq, Eq)]
pub struct Phrase(String);

/// Why there is no phrase.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PhraseError {
    /// The text is too short to resist guesses.
    #[error("it has fewer than {LEAST} characters")]
    TooShort,
    /// The text is not a phrase but something else.
    #[error("it has more than {MOST} characters")]
    TooLong,
    /// The operating system provides no random bytes.
    #[error("the operating system returned no random bytes")]
    Randomness,
}

impl Phrase {
    /// A new random phrase of 48 bits, such as `lusab-babad-gutih`.
    ///
    /// # Errors
    ///
    /// The operating system provides no random bytes.
    pub fn random() -> Result<Self, PhraseError> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(|_| PhraseError::Randomness)?;
        Ok(Self(proquints(&bytes)))
    }

    /// The bytes that both sides must have in common: upper case, spaces and dashes do not matter.
    pub(crate) fn secret(&self) -> String {
        let words: Vec<String> = self
            .0
            .split(|c: char| c.is_whitespace() || c == '-')
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        words.join("-")
    }
}

impl FromStr for Phrase {
    type Err = PhraseError;

    fn from_str(text: &str) -> Result<Self, PhraseError> {
        let phrase = Self(text.trim().to_owned());
        match phrase.secret().chars().count() {
            ..LEAST => Err(PhraseError::TooShort),
            LEAST..=MOST => Ok(phrase),
            _ => Err(PhraseError::TooLong),
        }
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Phrase(..)")
    }
}

fn proquints(bytes: &[u8]) -> String {
    let words: Vec<String> = bytes
        .chunks_exact(2)
        .map(|pair| {
            let bits = usize::from(pair[0]) << 8 | usize::from(pair[1]);
            let letter = |shift: usize, letters: &[u8]| {
                char::from(letters[bits >> shift & (letters.len() - 1)])
            };
            [
                letter(12, CONSONANTS),
                letter(10, VOWELS),
                letter(6, CONSONANTS),
                letter(4, VOWELS),
                letter(0, CONSONANTS),
            ]
            .iter()
            .collect()
        })
        .collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the proposal: 127.0.0.1 is lusab-babad, 63.84.220.193 is gutih-tugad.
    #[test]
    fn proquints_are_those_of_the_proposal() {
        assert_eq!(proquints(&[127, 0, 0, 1]), "lusab-babad");
        assert_eq!(proquints(&[63, 84, 220, 193]), "gutih-tugad");
    }

    #[test]
    fn phrases_differ_and_have_48_bits() {
        let (one, other) = (Phrase::random().unwrap(), Phrase::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.to_string().len(), 17);
    }

    #[test]
    fn spelling_does_not_matter() {
        let phrase = |text: &str| text.parse::<Phrase>().unwrap().secret();
        assert_eq!(phrase(" Lusab Babad  gutih\n"), phrase("lusab-babad-gutih"));
        assert_ne!(phrase("lusab-babad-gutik"), phrase("lusab-babad-gutih"));
        assert_eq!("short".parse::<Phrase>(), Err(PhraseError::TooShort));
        assert_eq!("- - - - - -".parse::<Phrase>(), Err(PhraseError::TooShort));
    }
}
