//! Masks that encrypt record numbers in DTLS 1.3 (RFC 9147 4.2.3).

use std::cell::RefCell;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use ring::aead::quic;

/// The mask for ChaCha20, computed as in QUIC (RFC 9001 5.4.4). `dimpl` uses two bytes of it.
pub(super) fn chacha20(key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
    let mut mask = [0; 16];
    // Key and sample have the lengths that this algorithm asks for.
    if let Ok(key) = quic::HeaderProtectionKey::new(&quic::CHACHA20, key)
        && let Ok(bytes) = key.new_mask(sample)
    {
        mask[..bytes.len()].copy_from_slice(&bytes);
    }
    mask
}

/// The mask for AES: one encrypted block. `ring` returns only five bytes of it, and `dimpl` checks
/// all 16.
pub(super) fn aes(key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
    let Ok(key) = key.try_into() else { return *sample };
    EXPANDED.with_borrow_mut(|keys| keys.encrypt(key, *sample))
}

thread_local! {
    static EXPANDED: RefCell<Expanded> = const { RefCell::new(Expanded([None, None])) };
}

/// Key schedules of the two keys used last, one for each direction of a connection.
///
/// `dimpl` passes the raw key with every record, and expanding a key takes longer than encrypting a
/// block.
struct Expanded([Option<([u8; 16], Aes128)>; 2]);

impl Expanded {
    fn encrypt(&mut self, key: [u8; 16], sample: [u8; 16]) -> [u8; 16] {
        let is = |slot: &Option<([u8; 16], Aes128)>| slot.as_ref().is_some_and(|(k, _)| *k == key);
        if !is(&self.0[0]) {
            // Either the key is in the other slot, or it replaces the least recently used one.
            self.0.swap(0, 1);
        }
        if !is(&self.0[0]) {
            self.0[0] = Some((key, Aes128::new(&key.into())));
        }
        let mut block = sample.into();
        if let Some((_, cipher)) = &self.0[0] {
            cipher.encrypt_block(&mut block);
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
        // A third key evicts one of the two.
        let third = [7; 16];
        let alone = aes(&third, &[9; 16]);
        for turn in [0, 1, 0, 0, 1, 2, 1, 0, 2, 2, 0, 1] {
            match KNOWN.get(turn) {
                Some((key, sample, mask)) => {
                    assert_eq!(aes(&key.to_be_bytes(), &sample.to_be_bytes()), mask.to_be_bytes());
                }
                None => assert_eq!(aes(&third, &[9; 16]), alone),
            }
        }
    }
}
