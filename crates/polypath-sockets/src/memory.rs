//! The program's memory, which the kernel checks before it uses a pointer: EFAULT, not a signal.
//!
//! [`check`] compares numbers only. [`probe`] also asks the kernel whether the memory is there; it
//! costs a system call, so calls that move data do without it.

use std::ffi::c_void;

use crate::errno::{self, Errno};

/// Smallest size of a page.
const PAGE: usize = 4096;

/// Maximum number of pages that one call of [`probe`] looks at.
const MOST_PAGES: usize = 64;

/// Refuses a range that cannot belong to a program: in the first page or in the kernel's half.
pub(crate) fn check<T>(at: *const T, size: usize) -> Errno<()> {
    // AArch64 ignores the top byte of a program's address.
    let half: usize = if cfg!(target_arch = "aarch64") { 1 << 55 } else { 1 << 63 };
    let start = at.addr();
    let last = start.checked_add(size.saturating_sub(1));
    let inside = start >= PAGE && last.is_some_and(|last| last & half == 0);
    if inside || size == 0 { Ok(()) } else { Err(libc::EFAULT) }
}

/// As [`check`], and refuses memory that is not there. Where the kernel does not allow the
/// question, any memory is accepted.
pub(crate) fn probe<T>(at: *const T, size: usize) -> Errno<()> {
    check(at, size)?;
    if size == 0 {
        return Ok(());
    }
    let (start, last) = (at.addr(), at.addr() + size - 1);
    let pages = (start / PAGE..=last / PAGE).take(MOST_PAGES);
    // A byte of each page.
    let remote: Vec<libc::iovec> = pages
        .map(|page| libc::iovec {
            iov_base: at.cast::<c_void>().with_addr(start.max(page * PAGE)).cast_mut(),
            iov_len: 1,
        })
        .collect();
    let mut bytes = [0u8; MOST_PAGES];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: remote.len() };
    let before = errno::get();
    // SAFETY: the local part has room for a byte of each page. The kernel checks the others.
    let read = unsafe {
        let count = remote.len() as libc::c_ulong;
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, remote.as_ptr(), count, 0)
    };
    let there = match usize::try_from(read) {
        Ok(count) => count == remote.len(),
        Err(_) => errno::get() != libc::EFAULT,
    };
    errno::set(before);
    if there { Ok(()) } else { Err(libc::EFAULT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_there_is_refused() {
        let bytes = [0u8; 3 * PAGE];
        assert_eq!(probe(bytes.as_ptr(), bytes.len()), Ok(()));
        assert_eq!(probe(std::ptr::without_provenance::<u8>(0), 0), Ok(()));
        for address in [0, 1, PAGE - 1, usize::MAX, usize::MAX - 15] {
            let at = std::ptr::without_provenance::<u8>(address);
            assert_eq!(check(at, 16), Err(libc::EFAULT), "{address:x}");
        }
        // SAFETY: the kernel chooses a place for two pages, the second of which goes again.
        let page = unsafe {
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), 2 * PAGE, libc::PROT_READ, kind, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::munmap(at.cast::<u8>().add(PAGE).cast(), PAGE);
            at.cast::<u8>()
        };
        assert_eq!(probe(page, PAGE), Ok(()));
        assert_eq!(probe(page, PAGE + 1), Err(libc::EFAULT));
        assert_eq!(probe(page.wrapping_add(PAGE), 1), Err(libc::EFAULT));
        // SAFETY: nothing else uses the page.
        unsafe { libc::munmap(page.cast(), PAGE) };
    }
}
