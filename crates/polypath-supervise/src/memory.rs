//! The memory of the program, which is read and written from outside.

use std::ffi::{c_int, c_void};
use std::io;

use libc::{iovec, pid_t};

/// Parts that one system call moves.
const MOST_PARTS: usize = 1024;

/// Smallest size of a page.
const PAGE: usize = 4096;

/// The memory of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Memory(pub(crate) pid_t);

/// A place in the program's memory, and its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) at: usize,
    pub(crate) size: usize,
}

impl Place {
    pub(crate) const fn new(at: u64, size: usize) -> Self {
        Self { at: at as usize, size }
    }

    /// Refuses what cannot belong to a program: the first page and the kernel's half.
    fn check(self) -> Result<(), c_int> {
        let half: usize = if cfg!(target_arch = "aarch64") { 1 << 55 } else { 1 << 63 };
        let last = self.at.checked_add(self.size.saturating_sub(1));
        let inside = self.at >= PAGE && last.is_some_and(|last| last & half == 0);
        if inside || self.size == 0 { Ok(()) } else { Err(libc::EFAULT) }
    }
}

/// Checks places before a message is received that would be lost otherwise.
pub(crate) fn check(places: &[Place]) -> Result<(), c_int> {
    places.iter().try_for_each(|place| place.check())
}

/// Moves bytes between a buffer of this process and places in the program, all of them or none.
type Move = unsafe extern "C" fn(
    pid_t,
    *const iovec,
    libc::c_ulong,
    *const iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

impl Memory {
    /// # Safety
    ///
    /// `buffer` may be read, or written, for `size` bytes, as `work` requires.
    unsafe fn all(
        self,
        work: Move,
        buffer: *mut u8,
        size: usize,
        places: &[Place],
    ) -> Result<(), c_int> {
        let (mut done, mut at) = (0, 0);
        while done < size {
            let mut parts = Vec::with_capacity(places.len().min(MOST_PARTS));
            let mut wanted = 0;
            while at < places.len() && parts.len() < MOST_PARTS && done + wanted < size {
                let length = places[at].size.min(size - done - wanted);
                let iov_base = std::ptr::without_provenance_mut::<c_void>(places[at].at);
                parts.push(iovec { iov_base, iov_len: length });
                (wanted, at) = (wanted + length, at + 1);
            }
            if wanted == 0 {
                return Err(libc::EFAULT);
            }
            let local = iovec { iov_base: buffer.wrapping_add(done).cast(), iov_len: wanted };
            // SAFETY: the local part is inside of the buffer. The kernel checks the others.
            let moved = unsafe {
                work(self.0, &raw const local, 1, parts.as_ptr(), parts.len() as libc::c_ulong, 0)
            };
            match usize::try_from(moved) {
                Ok(moved) if moved == wanted => done += moved,
                Ok(_) => return Err(libc::EFAULT),
                Err(_) => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => at -= parts.len(),
                    _ => return Err(libc::EFAULT),
                },
            }
        }
        Ok(())
    }

    /// Fills the buffer from places of the same size together.
    pub(crate) fn gather(self, places: &[Place], buffer: &mut [u8]) -> Result<(), c_int> {
        // SAFETY: the buffer is writable for its length.
        unsafe { self.all(libc::process_vm_readv, buffer.as_mut_ptr(), buffer.len(), places) }
    }

    /// Writes bytes to places, which have room for them.
    pub(crate) fn scatter(self, places: &[Place], bytes: &[u8]) -> Result<(), c_int> {
        let from = bytes.as_ptr().cast_mut();
        // SAFETY: the bytes are only read.
        unsafe { self.all(libc::process_vm_writev, from, bytes.len(), places) }
    }

    pub(crate) fn read(self, at: u64, buffer: &mut [u8]) -> Result<(), c_int> {
        let place = Place::new(at, buffer.len());
        place.check()?;
        self.gather(&[place], buffer)
    }

    pub(crate) fn write(self, at: u64, bytes: &[u8]) -> Result<(), c_int> {
        self.scatter(&[Place::new(at, bytes.len())], bytes)
    }

    pub(crate) fn read_u32(self, at: u64) -> Result<u32, c_int> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes).map(|()| u32::from_ne_bytes(bytes))
    }

    /// The parts of a message: `count` structures `iovec`.
    pub(crate) fn parts(self, at: u64, count: usize) -> Result<Vec<Place>, c_int> {
        let mut bytes = vec![0; count * size_of::<iovec>()];
        self.read(at, &mut bytes)?;
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |all, one| all << 8 | u64::from(*one));
        let places = bytes.chunks_exact(size_of::<iovec>());
        Ok(places.map(|one| Place::new(number(&one[..8]), number(&one[8..]) as usize)).collect())
    }
}

/// The size of places together: EINVAL if it is no result of a call.
pub(crate) fn total(places: &[Place]) -> Result<usize, c_int> {
    let sum = places.iter().try_fold(0isize, |sum, one| sum.checked_add_unsigned(one.size));
    sum.map(isize::unsigned_abs).ok_or(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Memory {
        Memory(std::process::id() as pid_t)
    }

    fn place(bytes: &[u8]) -> Place {
        Place { at: bytes.as_ptr().addr(), size: bytes.len() }
    }

    #[test]
    fn bytes_move_between_a_buffer_and_many_places() {
        let source: Vec<u8> = (0..3000u32).map(|at| at as u8).collect();
        let places: Vec<Place> = source.chunks(1).map(place).collect();
        let mut buffer = vec![0; 3000];
        assert_eq!(own().gather(&places, &mut buffer), Ok(()));
        assert_eq!(buffer, source);
        assert_eq!(own().gather(&places[1..], &mut buffer), Err(libc::EFAULT));
        let mut target = vec![0u8; 3000];
        let places: Vec<Place> = target.chunks_mut(7).map(|chunk| place(chunk)).collect();
        assert_eq!(own().scatter(&places, &source[..2990]), Ok(()));
        assert_eq!(target[..2990], source[..2990]);
        assert_eq!(target[2990..], [0; 10]);
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        assert_eq!(own().read(0, &mut [0; 4]), Err(libc::EFAULT));
        assert_eq!(own().read(8, &mut []), Ok(()));
        assert_eq!(own().read(u64::MAX - 2, &mut [0; 8]), Err(libc::EFAULT));
        assert_eq!(own().write(PAGE as u64, &[1]), Err(libc::EFAULT));
        assert_eq!(check(&[Place { at: 1, size: 1 }]), Err(libc::EFAULT));
        assert_eq!(check(&[Place { at: 0, size: 0 }]), Ok(()));
        assert_eq!(total(&[Place { at: 0, size: isize::MAX as usize }; 2]), Err(libc::EINVAL));
    }

    #[test]
    fn parts_are_read_as_the_kernel_reads_them() {
        let bytes = [1u8, 2, 3];
        let parts = [
            iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: 3 },
            iovec { iov_base: std::ptr::null_mut(), iov_len: 0 },
        ];
        let found = own().parts(parts.as_ptr().addr() as u64, 2).unwrap();
        assert_eq!((found[0].at, found[0].size), (bytes.as_ptr().addr(), 3));
        assert_eq!((found[1].at, found[1].size), (0, 0));
    }
}
