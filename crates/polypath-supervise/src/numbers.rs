//! Numbers of the program's SCTP descriptors.
//!
//! They are large, so that the filter lets calls on all other descriptors pass: the kernel gives
//! each new descriptor the smallest free number. As long as they last, they are smaller than 1024,
//! which is the limit of select(2). Only the program's thread can make a descriptor, and the
//! supervisor names the number: it must not be one that another thread of the program gets at the
//! same moment from the kernel, which therefore must have smaller ones left.

use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use libc::pid_t;

use crate::target::Target;

/// Limit of the numbers for select(2).
const SELECT: u32 = 1024;

/// Limit of the numbers of SCTP descriptors, to which the program's limit is raised if the system
/// permits that.
const MOST: u32 = 1 << 16;

/// Free numbers that stay below a new one.
const SPARE: u32 = 16;

/// Numbers that are about to be given away, with their processes.
static RESERVED: Mutex<Option<HashSet<(pid_t, u32)>>> = Mutex::new(None);

/// The smallest number of an SCTP descriptor, where a program begins with this limit of numbers.
pub(crate) fn base(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX).min(SELECT) / 2
}

/// A number that belongs to the caller until it is dropped.
#[derive(Debug)]
pub(crate) struct Number {
    process: pid_t,
    pub(crate) number: u32,
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.get_or_insert_default().remove(&(self.process, self.number));
    }
}

/// Chooses a free number that is at least `from`: EMFILE if there is none.
pub(crate) fn choose(target: Target, base: u32, from: u32) -> Result<Number, c_int> {
    let process = target.status().map_err(|_| libc::EMFILE)?.process;
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let reserved = reserved.get_or_insert_default();
    // With the lock: a number that was reserved is then free, or in the list.
    let (open, limit) = target.numbers().map_err(|_| libc::EMFILE)?;
    let mut used: HashSet<u32> = open.into_iter().collect();
    used.extend(reserved.iter().filter(|one| one.0 == process).map(|one| one.1));
    let number = free(&used, limit, base, from).or_else(|| {
        // Not for a program that has lowered its limit.
        let higher = (limit >= SELECT).then(|| target.raise_limit(MOST))??;
        free(&used, higher, base, from)
    });
    let number = number.ok_or(libc::EMFILE)?;
    reserved.insert((process, number));
    Ok(Number { process, number })
}

/// The largest free number below that of select(2), or else the smallest above.
fn free(used: &HashSet<u32>, limit: u32, base: u32, from: u32) -> Option<u32> {
    let low = base.max(from);
    let below = (low..limit.min(SELECT)).rev();
    let above = low.max(SELECT)..limit.min(MOST);
    let number = below.chain(above).find(|number| !used.contains(number))?;
    let smaller = used.iter().filter(|one| **one < number).count();
    // `smaller` is at most `number`.
    (number - smaller as u32 >= SPARE.min(base / 2)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_large_and_leave_smaller_ones_free() {
        assert_eq!((base(1024), base(1 << 20), base(64), base(u64::MAX)), (512, 512, 32, 512));
        let used = |numbers: std::ops::Range<u32>| numbers.collect::<HashSet<u32>>();
        assert_eq!(free(&used(0..3), 1024, 512, 0), Some(1023));
        assert_eq!(free(&used(1000..1024), 1024, 512, 0), Some(999));
        assert_eq!(free(&used(512..1024), 1024, 512, 0), None);
        assert_eq!(free(&used(512..1030), 65536, 512, 0), Some(1030));
        assert_eq!(free(&used(512..1024), 65536, 512, 2000), Some(2000));
        // The kernel is about to give these away.
        assert_eq!(free(&used(0..1020), 1024, 512, 0), None);
        assert_eq!(free(&used(0..3), 64, 32, 0), Some(63));
        assert_eq!(free(&used(0..3), 10, 32, 0), None);
    }

    #[test]
    fn a_number_is_given_to_one_call_only() {
        let own = Target(std::process::id() as pid_t);
        let one = choose(own, 512, 0).unwrap();
        let other = choose(own, 512, 0).unwrap();
        assert_ne!(one.number, other.number);
        let number = one.number;
        drop(one);
        assert_eq!(choose(own, 512, 0).unwrap().number, number);
    }
}
