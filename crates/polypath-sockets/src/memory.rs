//! The program's memory, which the kernel checks before it uses a pointer: EFAULT, not a signal.
//!
//! [`check`] compares numbers only. [`probe`] also asks the kernel whether the memory is there.
//! [`copy_in`] and [`copy_out`] ask it before they copy, for this costs less than a copy by the
//! kernel.

use std::ffi::{c_int, c_void};

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
    // SAFETY: the local part has room for a byte of each page. The kernel checks the others.
    moved(remote.len(), || unsafe {
        let count = remote.len() as libc::c_ulong;
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, remote.as_ptr(), count, 0)
    })
    .map(drop)
}

/// Runs a system call that copies memory. EFAULT unless it has copied `size` bytes; false if the
/// kernel does not allow the call.
fn moved(size: usize, copy: impl FnOnce() -> isize) -> Errno<bool> {
    let before = errno::get();
    let copied = usize::try_from(copy());
    let refused = copied.is_err() && errno::get() != libc::EFAULT;
    errno::set(before);
    match copied {
        Ok(copied) if copied == size => Ok(true),
        _ if refused => Ok(false),
        _ => Err(libc::EFAULT),
    }
}

/// Whether the kernel reports that all pages of a range are there, with the access that `advice`
/// names (MADV_POPULATE_READ or MADV_POPULATE_WRITE, of Linux 5.14).
fn is_there(at: *const u8, size: usize, advice: c_int) -> bool {
    let first = at.addr() / PAGE * PAGE;
    let before = errno::get();
    // SAFETY: the advice changes no contents. The kernel checks the range.
    let result = unsafe {
        let first = at.with_addr(first).cast_mut().cast();
        libc::madvise(first, at.addr() + size - first.addr(), advice)
    };
    errno::set(before);
    result == 0
}

/// Appends bytes of the program.
///
/// # Safety
///
/// The range passes [`check`]. If it is memory of the program, no other thread writes it meanwhile.
pub(crate) unsafe fn copy_in(from: *const u8, size: usize, to: &mut Vec<u8>) -> Errno<()> {
    to.reserve(size);
    let at = to.spare_capacity_mut().as_mut_ptr().cast::<u8>();
    let copied = size == 0
        || !is_there(from, size, libc::MADV_POPULATE_READ) && {
            let local = libc::iovec { iov_base: at.cast(), iov_len: size };
            let remote = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: size };
            // SAFETY: there is room for `size` bytes, and the kernel checks the program's part.
            moved(size, || unsafe {
                libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
            })?
        };
    // SAFETY: there is room; the program's bytes are there, or the kernel refuses to check.
    unsafe {
        if !copied {
            std::ptr::copy_nonoverlapping(from, at, size);
        }
        to.set_len(to.len() + size);
    }
    Ok(())
}

/// Copies bytes to the program.
///
/// # Safety
///
/// The range passes [`check`]. If it is memory of the program, nothing else uses it meanwhile.
pub(crate) unsafe fn copy_out(from: &[u8], to: *mut u8) -> Errno<()> {
    let size = from.len();
    let copied = size == 0
        || !is_there(to, size, libc::MADV_POPULATE_WRITE) && {
            let local = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: size };
            let remote = libc::iovec { iov_base: to.cast(), iov_len: size };
            // SAFETY: the kernel reads the local part, and checks the program's one.
            moved(size, || unsafe {
                let (local, remote) = (&raw const local, &raw const remote);
                libc::process_vm_writev(libc::getpid(), local, 1, remote, 1, 0)
            })?
        };
    if !copied {
        // SAFETY: the program's memory is there, or the kernel refuses to check.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, size) };
    }
    Ok(())
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
        let mut read = vec![7];
        // SAFETY: the ranges pass `check`, and nothing else uses the page.
        unsafe {
            assert_eq!(copy_in(page, PAGE, &mut read), Ok(()));
            assert_eq!(copy_in(page, PAGE + 1, &mut read), Err(libc::EFAULT));
            assert_eq!(copy_in(page.wrapping_add(PAGE), 1, &mut read), Err(libc::EFAULT));
            // It may only be read.
            assert_eq!(copy_out(b"byte", page), Err(libc::EFAULT));
            libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE);
            assert_eq!(copy_out(b"byte", page.wrapping_add(PAGE - 2)), Err(libc::EFAULT));
            assert_eq!(copy_out(b"byte", page.wrapping_add(PAGE - 4)), Ok(()));
            assert_eq!(copy_in(page.wrapping_add(PAGE - 4), 4, &mut read), Ok(()));
        }
        assert_eq!((read[0], read.len(), &read[PAGE + 1..]), (7, PAGE + 5, &b"byte"[..]));
        // SAFETY: nothing else uses the page.
        unsafe { libc::munmap(page.cast(), PAGE) };
    }
}
