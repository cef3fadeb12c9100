//! The generator that ns-2 breaks ties with, so that both make the same choices.
//!
//! MRG32k3a: P. L'Ecuyer, "Good parameters and implementations for combined multiple recursive
//! random number generators", Operations Research 47(1), 1999. It combines two recurrences of order
//! three.

use crate::rng::Ties;

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;

/// 1 / (M1 + 1), as written in ns-2.
const NORM: f64 = 2.328_306_549_295_728e-10;

/// The generator after `$defaultRNG seed` with this number, when ties can occur: the jitter of both
/// sides' first HEARTBEATs consumes two draws before any.
pub(super) fn after_handshake(seed: u32) -> Mrg32k3a {
    let mut generator = Mrg32k3a::new(seed);
    generator.next_u31();
    generator.next_u31();
    generator
}

impl Ties for Mrg32k3a {
    fn odd(&mut self) -> bool {
        self.next_u31() & 1 == 1
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Mrg32k3a {
    first: [u64; 3],
    second: [u64; 3],
}

impl Mrg32k3a {
    /// Sets all six words of the state to `seed`, which is from 1 to the largest `tie_seed`: below
    /// both moduli.
    const fn new(seed: u32) -> Self {
        Self { first: [seed as u64; 3], second: [seed as u64; 3] }
    }

    /// Uniform in 0 .. 2^31. ns-2: `Random::random`, `ns-random`.
    fn next_u31(&mut self) -> u32 {
        // Subtractions are written as additions of the negated factor, to stay in unsigned numbers.
        let [a, b, c] = self.first;
        let p1 = (1_403_580 * b + (M1 - 810_728) * a % M1) % M1;
        self.first = [b, c, p1];
        let [a, b, c] = self.second;
        let p2 = (527_612 * c + (M2 - 1_370_589) * a % M2) % M2;
        self.second = [b, c, p2];
        let difference = if p1 > p2 { p1 - p2 } else { p1 + M1 - p2 };
        (difference as f64 * NORM * f64::from(1u32 << 31)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Parameter;
    use crate::kind::Kind;
    use crate::rng::{Rng, Seed};

    /// 663971912 and its successors, after two draws for HEARTBEATs: even and odd numbers.
    #[test]
    fn ties_are_decided_by_the_lowest_bit() {
        let dice =
            || Rng::new(&Seed::from_u64(7)).with_ties(Some(Box::new(after_handshake(12345))));
        let bits = [663_971_912u32, 1_773_492_633, 475_946_620].map(|n| n & 1 == 1);
        let mut odd = dice();
        assert_eq!([1, 1, 1].map(|bit| odd.takes_over(2, bit)), bits);
        let mut even = dice();
        assert_eq!([0, 0, 0].map(|bit| even.takes_over(5, bit)), bits.map(|bit| !bit));
    }

    /// L'Ecuyer's generator with its usual seed starts with 0.127011, 0.318528, 0.309186, 0.825847;
    /// the integers are the output of `ns-random` after `$defaultRNG seed`.
    #[test]
    fn its_numbers_are_those_that_are_known() {
        let mut dice = Mrg32k3a::new(12345);
        let numbers: Vec<_> = (0..5).map(|_| dice.next_u31()).collect();
        assert_eq!(numbers, [272_754_307, 684_032_738, 663_971_912, 1_773_492_633, 475_946_620]);
        assert!((f64::from(numbers[0]) / f64::from(1u32 << 31) - 0.127_011_122).abs() < 1e-9);
        let mut dice = Mrg32k3a::new(7);
        assert_eq!([dice.next_u31(), dice.next_u31()], [5_036_723, 1_913_728_326]);
        let Kind::Count(seeds) = &Parameter::find("tie_seed").unwrap().kind else { panic!() };
        assert_eq!(*seeds, 1..=M2 - 1);
        let mut dice = Mrg32k3a::new((M2 - 1) as u32);
        assert!((0..1000).all(|_| dice.next_u31() < 1 << 31));
    }
}
