//! Masks that encrypt record numbers in DTLS 1.3 (RFC 9147 4.2.3).

use std::fmt;
use std::sync::{Mutex, PoisonError};

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use ring::aead::quic;

/// Number of key schedules: one for each direction of four connections.
const KEPT: usize = 8;

/// Computes the masks of a cipher suite.
pub(super) enum Mask {
    /// Computed as in QUIC (RFC 9001 5.4.4). `dimpl` uses two bytes of it.
    ChaCha20,
    /// One encrypted block. `ring` returns only five bytes of it, and `dimpl` checks all 16.
    Aes(Mutex<Schedules>),
}

impl Mask {
    /// AES, without any key schedule.
    pub(super) const fn aes() -> Self {
        Self::Aes(Mutex::new(Schedules { kept: Vec::new(), next: 0 }))
    }

    /// The mask for a record whose ciphertext begins with `sample`.
    pub(super) fn compute(&self, key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
        match self {
            Self::ChaCha20 => chacha20(key, sample),
            Self::Aes(schedules) => {
                let Ok(key) = key.try_into() else { return *sample };
                let mut schedules = schedules.lock().unwrap_or_else(PoisonError::into_inner);
                schedules.encrypt(key, *sample)
            }
        }
    }

    /// Drops all key schedules.
    pub(super) fn clear(&self) {
        if let Self::Aes(schedules) = self {
            schedules.lock().unwrap_or_else(PoisonError::into_inner).kept.clear();
        }
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask(..)")
    }
}

fn chacha20(key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
    let mut mask = [0; 16];
    // Key and sample have the lengths that this algorithm asks for.
    if let Ok(key) = quic::HeaderProtectionKey::new(&quic::CHACHA20, key)
        && let Ok(bytes) = key.new_mask(sample)
    {
        mask[..bytes.len()].copy_from_slice(&bytes);
    }
    mask
}

/// The key schedules that were expanded last.
///
/// `dimpl` passes the raw key with every record, and expanding a key takes longer than encrypting a
/// block.
pub(super) struct Schedules {
    kept: Vec<([u8; 16], Aes128Enc)>,
    /// Index in `kept` of the schedule that the next new key replaces.
    next: usize,
}

impl Schedules {
    fn encrypt(&mut self, key: [u8; 16], sample: [u8; 16]) -> [u8; 16] {
        let mut block = sample.into();
        if let Some((_, cipher)) = self.kept.iter().find(|(kept, _)| *kept == key) {
            cipher.encrypt_block(&mut block);
            return block.into();
        }
        let cipher = Aes128Enc::new(&key.into());
        cipher.encrypt_block(&mut block);
        if self.kept.len() < KEPT {
            self.kept.push((key, cipher));
        } else {
            self.kept[self.next] = (key, cipher);
            self.next = (self.next + 1) % KEPT;
        }
        block.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix B and C.1.
    const KNOWN: [(u128, u128, u128); 2] = [
        (
            0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
            0x3243_f6a8_885a_308d_3131_98a2_e037_0734,
            0x3925_841d_02dc_09fb_dc11_8597_196a_0b32,
        ),
        (
            0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
            0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
            0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a,
        ),
    ];

    #[test]
    fn keys_used_in_turn_give_the_masks_of_fips_197() {
        let mask = Mask::aes();
        // Each of the other keys has a schedule of its own, and they replace one another.
        let others = |turn: u8| mask.compute(&[turn; 16], &[9; 16]);
        let alone: Vec<_> =
            (0..3 * KEPT as u8).map(|turn| Mask::aes().compute(&[turn; 16], &[9; 16])).collect();
        for turn in (0..3 * KEPT as u8).chain(0..3).chain([0; 3]) {
            assert_eq!(others(turn), alone[usize::from(turn)]);
            for (key, sample, expected) in KNOWN {
                let mask = mask.compute(&key.to_be_bytes(), &sample.to_be_bytes());
                assert_eq!(mask, expected.to_be_bytes());
            }
        }
    }
}
