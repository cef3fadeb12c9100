//! Limits of what one address, and all of them, may occupy.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts associations by the address of their peer.
#[derive(Clone, Debug)]
pub struct Slots {
    per_address: usize,
    taken: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// A place that is free again when this is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Slots,
    address: IpAddr,
}

impl Slots {
    /// At most `per_address` associations for an IPv4 address or an IPv6 network of 64 bits, the
    /// smallest that a host can choose its addresses from (RFC 4291 2.5.1).
    pub fn new(per_address: usize) -> Self {
        Self { per_address, taken: Arc::default() }
    }

    /// Takes a place; `None` if all of this address are taken.
    pub fn take(&self, address: IpAddr) -> Option<Slot> {
        let address = network(address);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(address).or_default();
        if *count >= self.per_address {
            return None;
        }
        *count += 1;
        Some(Slot { slots: self.clone(), address })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// The unit that is counted.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
        four => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_network_and_given_back() {
        let slots = Slots::new(2);
        let take = |address: &str| slots.take(address.parse().unwrap());
        let (first, _second) = (take("10.0.0.1").unwrap(), take("10.0.0.1").unwrap());
        assert!(take("10.0.0.1").is_none() && take("::ffff:10.0.0.1").is_none());
        assert!(take("10.0.0.2").is_some());
        drop(first);
        assert!(take("10.0.0.1").is_some());
        let _six = (take("fd00::1").unwrap(), take("fd00::2").unwrap());
        assert!(take("fd00::3").is_none());
        assert!(take("fd00:0:0:1::3").is_some());
    }
}
