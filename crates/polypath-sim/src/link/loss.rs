//! Loss models of a link.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::script::{LossScript, PacketKind, Seen};
use crate::random::Random;
use crate::units::Probability;

/// Loss model of a link.
///
/// In scenario files: `"3 %"`; or `{ good_to_bad = "1 %", bad_to_good = "25 %", loss_good = "0 %",
/// loss_bad = "100 %" }`; or a script such as `{ packets = [3, 17] }` or
/// `{ data = [5, 9], sack = [2] }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossModel {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with this probability, independently of the others.
    Bernoulli(Probability),
    /// Two states, each with its own loss probability (Gilbert 1960, Elliott 1963). The state is
    /// "good" initially and may change before each packet, the first one included.
    GilbertElliott {
        /// Probability, per packet, of a change from the good to the bad state.
        good_to_bad: Probability,
        /// Probability, per packet, of a change from the bad to the good state.
        bad_to_good: Probability,
        /// Loss probability in the good state.
        loss_good: Probability,
        /// Loss probability in the bad state.
        loss_bad: Probability,
    },
    /// Exactly the packets of the script are lost.
    Script(LossScript),
}

impl LossModel {
    /// Independent loss; no loss at all if `p` is 0.
    pub fn bernoulli(p: Probability) -> Self {
        if p == Probability::ZERO { Self::None } else { Self::Bernoulli(p) }
    }

    /// The share of packets lost in the long run; `None` for a script.
    pub fn mean(&self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Bernoulli(p) => Some(p.get()),
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let (p, r) = (good_to_bad.get(), bad_to_good.get());
                let bad = if p + r == 0.0 { 0.0 } else { p / (p + r) };
                Some(bad * loss_bad.get() + (1.0 - bad) * loss_good.get())
            }
            Self::Script(_) => None,
        }
    }
}

/// A loss model with its state. Each packet takes the same number of draws whatever its fate, so
/// the draws of the n-th packet depend on n alone.
#[derive(Clone, Debug)]
pub(super) struct LossProcess {
    model: LossModel,
    bad: bool,
    /// The packets so far; `None` if no script will ask for their numbers.
    seen: Option<Seen>,
}

impl LossProcess {
    pub(super) fn new(model: LossModel) -> Self {
        Self { model, bad: false, seen: Some(Seen::default()) }
    }

    /// No model that is set later will be a script. Counting the packets of each kind takes time.
    pub(super) fn without_scripts(&mut self) {
        if !matches!(self.model, LossModel::Script(_)) {
            self.seen = None;
        }
    }

    /// Replaces the model; a script still counts packets from the link's first packet.
    pub(super) fn set(&mut self, model: LossModel) {
        debug_assert!(
            self.seen.is_some() || !matches!(model, LossModel::Script(_)),
            "the packets before a script were not counted"
        );
        *self = Self { seen: self.seen, ..Self::new(model) };
    }

    /// Whether the next packet is lost. `payload` is its SCTP packet, empty for background packets.
    #[inline]
    pub(super) fn loses_next(&mut self, dice: &mut Random, payload: &[u8]) -> bool {
        let seen = self.seen.as_mut().map(|seen| (seen.count(payload), &*seen));
        match &self.model {
            LossModel::None => {
                dice.bits();
                false
            }
            LossModel::Bernoulli(p) => dice.chance(p.get()),
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let leave = if self.bad { bad_to_good } else { good_to_bad };
                self.bad ^= dice.chance(leave.get());
                dice.chance(if self.bad { loss_bad } else { loss_good }.get())
            }
            LossModel::Script(script) => {
                seen.is_some_and(|(kinds, seen)| script.takes(seen, kinds))
            }
        }
    }
}

impl Serialize for LossModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => Probability::ZERO.serialize(serializer),
            Self::Bernoulli(p) => p.serialize(serializer),
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => serializer
                .collect_map(ELLIOTT.into_iter().zip([
                    good_to_bad,
                    bad_to_good,
                    loss_good,
                    loss_bad,
                ])),
            Self::Script(script) => {
                let name = |kind: PacketKind| PacketKind::NAMES[kind as usize].1;
                // A script that loses nothing is still written as a script.
                let none = script.is_empty().then_some(("packets", [].as_slice()));
                let kinds = script.kinds().map(|(kind, numbers)| (name(kind), numbers));
                serializer.collect_map(kinds.chain(none))
            }
        }
    }
}

const ALLOWED: &str = "a probability such as \"3 %\", a table with good_to_bad, bad_to_good, \
                       loss_good and loss_bad, or a script such as { packets = [3, 17] } or \
                       { data = [5], sack = [2] }";

/// Keys of the Gilbert-Elliott model.
const ELLIOTT: [&str; 4] = ["good_to_bad", "bad_to_good", "loss_good", "loss_bad"];

/// All keys that a table may have.
const KEYS: [&str; ELLIOTT.len() + PacketKind::NAMES.len()] = {
    let mut keys = [""; ELLIOTT.len() + PacketKind::NAMES.len()];
    let mut n = 0;
    while n < keys.len() {
        let of_script = n.checked_sub(ELLIOTT.len());
        keys[n] = match of_script {
            None => ELLIOTT[n],
            Some(n) => PacketKind::NAMES[n].1,
        };
        n += 1;
    }
    keys
};

impl<'de> Deserialize<'de> for LossModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = LossModel;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(ALLOWED)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LossModel, E> {
                crate::units::ProbabilityReader.visit_str(text).map(LossModel::bernoulli)
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<LossModel, E> {
                crate::units::ProbabilityReader.visit_f64(number).map(LossModel::bernoulli)
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<LossModel, E> {
                self.visit_f64(number as f64)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LossModel, A::Error> {
                table(map)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

fn table<'de, A: MapAccess<'de>>(mut map: A) -> Result<LossModel, A::Error> {
    let mut elliott: [Option<Probability>; 4] = [None; 4];
    let mut script: Option<LossScript> = None;
    while let Some(key) = map.next_key::<String>()? {
        if let Some(n) = ELLIOTT.iter().position(|known| *known == key) {
            elliott[n] = Some(map.next_value()?);
        } else if let Some((kind, _)) = PacketKind::NAMES.iter().find(|(_, name)| *name == key) {
            let numbers: Vec<u64> = map.next_value()?;
            if numbers.contains(&0) {
                return Err(A::Error::custom("packets are counted from 1"));
            }
            script = Some(script.unwrap_or_default().and(*kind, numbers));
        } else {
            return Err(A::Error::unknown_field(&key, &KEYS));
        }
    }
    match (elliott, script) {
        ([None, None, None, None], Some(script)) => Ok(LossModel::Script(script)),
        ([Some(good_to_bad), Some(bad_to_good), loss_good, loss_bad], None) => {
            Ok(LossModel::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good: loss_good.unwrap_or(Probability::ZERO),
                loss_bad: loss_bad.unwrap_or(Probability::ONE),
            })
        }
        _ => Err(A::Error::custom(format_args!(
            "neither a whole Gilbert-Elliott model nor a script; allowed: {ALLOWED}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(model: LossModel, n: u32) -> f64 {
        let mut dice = Random::named(11, "loss");
        let mut process = LossProcess::new(model);
        let lost = (0..n).filter(|_| process.loses_next(&mut dice, &[])).count();
        lost as f64 / f64::from(n)
    }

    #[test]
    fn long_run_rates() {
        assert_eq!(rate(LossModel::None, 1000), 0.0);
        let bernoulli = LossModel::Bernoulli(Probability::percent(3));
        assert!((rate(bernoulli, 200_000) - 0.03).abs() < 0.002);
        let elliott = LossModel::GilbertElliott {
            good_to_bad: Probability::percent(1),
            bad_to_good: Probability::percent(20),
            loss_good: Probability::ZERO,
            loss_bad: Probability::percent(80),
        };
        let mean = elliott.mean().unwrap();
        assert!((mean - 0.8 / 21.0).abs() < 1e-12);
        assert!((rate(elliott, 400_000) - mean).abs() < 0.003);
    }

    #[test]
    fn elliott_losses_come_in_bursts() {
        let mut dice = Random::named(1, "loss");
        let mut process = LossProcess::new(LossModel::GilbertElliott {
            good_to_bad: Probability::percent(1),
            bad_to_good: Probability::percent(10),
            loss_good: Probability::ZERO,
            loss_bad: Probability::ONE,
        });
        let lost: Vec<bool> = (0..100_000).map(|_| process.loses_next(&mut dice, &[])).collect();
        let losses = lost.iter().filter(|&&l| l).count();
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count();
        let mean = losses as f64 / bursts as f64;
        assert!((8.5..11.5).contains(&mean), "mean burst of {mean} packets");
    }

    #[test]
    fn script_loses_exactly_those() {
        let mut dice = Random::named(1, "loss");
        let mut process = LossProcess::new(LossModel::Script(LossScript::packets([5, 2])));
        let lost: Vec<u64> = (1..=10).filter(|_| process.loses_next(&mut dice, &[])).collect();
        assert_eq!(lost.len(), 2);
        process.set(LossModel::Script(LossScript::packets([12])));
        assert!(!process.loses_next(&mut dice, &[]) && process.loses_next(&mut dice, &[]));
    }
}
