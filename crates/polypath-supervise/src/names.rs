//! Addresses that the program passes, and buffers for addresses.

use std::ffi::c_int;

use libc::{sockaddr, socklen_t};

use crate::call::{Answer, Call};
use crate::memory::{self, Place};

/// Size of `struct sockaddr_storage`.
pub(crate) const STORAGE: usize = 128;

/// An address that the program passes.
pub(crate) struct Name {
    bytes: Option<[u8; STORAGE]>,
    length: socklen_t,
}

impl Name {
    pub(crate) fn read(call: &Call<'_>, at: u64, length: c_int) -> Answer<Self> {
        let size = usize::try_from(length).map_err(|_| libc::EINVAL)?;
        let length = length as socklen_t;
        // The functions refuse a longer one, and a null pointer, without a look at it.
        if size > STORAGE || size == 0 || at == 0 {
            let bytes = (at != 0).then_some([0; STORAGE]);
            return Ok(Self { bytes, length });
        }
        let mut bytes = [0; STORAGE];
        call.memory.read(at, &mut bytes[..size])?;
        call.check()?;
        Ok(Self { bytes: Some(bytes), length })
    }

    pub(crate) fn pointer(&self) -> *const sockaddr {
        self.bytes.as_ref().map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
    }

    pub(crate) const fn length(&self) -> socklen_t {
        self.length
    }
}

/// A buffer for an address, as accept(2) takes it.
pub(crate) struct Room {
    to: u64,
    length: u64,
    size: usize,
    pub(crate) bytes: [u8; STORAGE],
    pub(crate) used: socklen_t,
}

impl Room {
    /// The buffer at these arguments, checked.
    pub(crate) fn read(call: &Call<'_>, to: u64, length: u64) -> Answer<Self> {
        let size = call.memory.read_u32(length)? as c_int;
        let size = usize::try_from(size).map_err(|_| libc::EINVAL)?;
        memory::check(&[Place::new(to, size)])?;
        Ok(Self { to, length, size, bytes: [0; STORAGE], used: STORAGE as socklen_t })
    }

    /// Writes the address, truncated, and its length.
    pub(crate) fn write(&self, call: &Call<'_>) -> Answer<()> {
        call.check()?;
        let used = (self.used as usize).min(self.size).min(STORAGE);
        call.memory.write(self.to, &self.bytes[..used])?;
        call.memory.write(self.length, &self.used.to_ne_bytes())?;
        Ok(())
    }
}
