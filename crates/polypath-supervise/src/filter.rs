//! The seccomp filter: which system calls of the program stop for an answer.
//!
//! Those that make an SCTP socket, and those on descriptors with a large number, since SCTP sockets
//! have large numbers (`numbers`). All others are the kernel's and cost next to nothing: the kernel
//! remembers the system calls that a filter permits whatever their arguments.

use std::ffi::c_long;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{sock_filter, sock_fprog};

/// The architecture whose numbers of system calls the filter knows (`linux/audit.h`).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Bit of the system calls of x32, which share x86-64's architecture.
const X32: u32 = 0x4000_0000;

/// Offset of the fields of `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// The lower half of an argument, on a host whose numbers begin with their lower half.
const fn argument(at: u32) -> u32 {
    16 + 8 * at
}

/// System calls whose first argument is a descriptor.
const ON_DESCRIPTORS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_ioctl,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_dup,
    libc::SYS_sendfile,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
];

/// Where a jump goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Next,
    Socket,
    Fcntl,
    Splice,
    Replace,
    Descriptor,
    Allow,
    Notify,
}

/// A filter in the making: instructions whose jumps have names.
#[derive(Default)]
struct Program {
    code: Vec<(u32, u32, To, To)>,
    places: Vec<(To, usize)>,
}

impl Program {
    fn place(&mut self, name: To) -> &mut Self {
        self.places.push((name, self.code.len()));
        self
    }

    fn load(&mut self, offset: u32) -> &mut Self {
        self.code.push((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, To::Next, To::Next));
        self
    }

    fn jump(&mut self, test: u32, value: u32, yes: To, no: To) -> &mut Self {
        self.code.push((libc::BPF_JMP | test | libc::BPF_K, value, yes, no));
        self
    }

    fn is(&mut self, value: u32, yes: To, no: To) -> &mut Self {
        self.jump(libc::BPF_JEQ, value, yes, no)
    }

    fn end(&mut self, action: u32) -> &mut Self {
        self.code.push((libc::BPF_RET | libc::BPF_K, action, To::Next, To::Next));
        self
    }

    fn done(&self) -> Vec<sock_filter> {
        let distance = |from: usize, to: To| {
            let place = self.places.iter().find(|(name, _)| *name == to);
            // Jumps go forwards, by less than 256 instructions.
            place.map_or(0, |(_, at)| (at - from - 1) as u8)
        };
        let one = |(at, (code, k, yes, no)): (usize, &(u32, u32, To, To))| sock_filter {
            code: *code as u16,
            jt: distance(at, *yes),
            jf: distance(at, *no),
            k: *k,
        };
        self.code.iter().enumerate().map(one).collect()
    }
}

/// The filter for SCTP sockets whose numbers are at least `base`.
fn program(base: u32) -> Vec<sock_filter> {
    let mut program = Program::default();
    program.load(ARCH).is(ARCHITECTURE, To::Next, To::Allow);
    program.load(NUMBER).jump(libc::BPF_JSET, X32, To::Allow, To::Next);
    program.is(libc::SYS_socket as u32, To::Socket, To::Next);
    program.is(libc::SYS_fcntl as u32, To::Fcntl, To::Next);
    program.is(libc::SYS_splice as u32, To::Splice, To::Next);
    #[cfg(target_arch = "x86_64")]
    program.is(libc::SYS_dup2 as u32, To::Replace, To::Next);
    program.is(libc::SYS_dup3 as u32, To::Replace, To::Next);
    for (at, call) in ON_DESCRIPTORS.iter().enumerate() {
        let last = at + 1 == ON_DESCRIPTORS.len();
        program.is(*call as u32, To::Descriptor, if last { To::Allow } else { To::Next });
    }
    program.place(To::Socket).load(argument(2));
    program.is(libc::IPPROTO_SCTP as u32, To::Next, To::Allow).load(argument(0));
    program.is(libc::AF_INET as u32, To::Notify, To::Next);
    program.is(libc::AF_INET6 as u32, To::Notify, To::Allow);
    program.place(To::Fcntl).load(argument(1));
    program.is(libc::F_DUPFD as u32, To::Descriptor, To::Next);
    program.is(libc::F_DUPFD_CLOEXEC as u32, To::Descriptor, To::Allow);
    program.place(To::Splice).load(argument(2));
    program.jump(libc::BPF_JGE, base, To::Notify, To::Descriptor);
    program.place(To::Replace).load(argument(1));
    program.jump(libc::BPF_JGE, base, To::Notify, To::Descriptor);
    program.place(To::Descriptor).load(argument(0));
    program.jump(libc::BPF_JGE, base, To::Notify, To::Allow);
    program.place(To::Allow).end(libc::SECCOMP_RET_ALLOW);
    program.place(To::Notify).end(libc::SECCOMP_RET_USER_NOTIF);
    program.done()
}

/// Installs the filter in the calling thread, for good. The result is the descriptor that receives
/// the notifications.
///
/// Allocates memory: the process must not be the copy of one with several threads.
pub(crate) fn install(base: u32) -> io::Result<OwnedFd> {
    let mut code = program(base);
    let filter = sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
        // Once the supervisor has received a call, only the end of the process interrupts it: a
        // message is never lost, or sent twice, because a signal arrives meanwhile.
        | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the calls take numbers, and a filter that lives during the call.
    let made = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let operation = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, operation, flags, &raw const filter)
    };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(made as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a filter does with a call: an interpreter of the instructions that are used.
    fn run(code: &[sock_filter], number: u32, arch: u32, args: [u64; 6]) -> u32 {
        let mut data = [0u8; 64];
        data[..4].copy_from_slice(&number.to_ne_bytes());
        data[4..8].copy_from_slice(&arch.to_ne_bytes());
        for (at, argument) in args.iter().enumerate() {
            data[16 + 8 * at..24 + 8 * at].copy_from_slice(&argument.to_ne_bytes());
        }
        let (mut at, mut value) = (0, 0u32);
        loop {
            let one = code[at];
            at += 1;
            let (kind, test) = (u32::from(one.code) & 7, u32::from(one.code) & 0xf0);
            match kind {
                libc::BPF_LD => {
                    let from = one.k as usize;
                    value = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                }
                libc::BPF_JMP => {
                    let holds = match test {
                        libc::BPF_JEQ => value == one.k,
                        libc::BPF_JGE => value >= one.k,
                        libc::BPF_JSET => value & one.k != 0,
                        _ => panic!("test {test}"),
                    };
                    at += usize::from(if holds { one.jt } else { one.jf });
                }
                libc::BPF_RET => return one.k,
                _ => panic!("instruction {kind}"),
            }
        }
    }

    #[test]
    fn calls_on_sctp_sockets_stop_and_others_do_not() {
        let code = program(512);
        let does = |number: c_long, args| run(&code, number as u32, ARCHITECTURE, args);
        let (stop, go) = (libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_RET_ALLOW);
        for call in ON_DESCRIPTORS {
            assert_eq!(does(*call, [511, 900, 900, 0, 0, 0]), go, "{call}");
            assert_eq!(does(*call, [512, 0, 0, 0, 0, 0]), stop, "{call}");
        }
        for (family, protocol, result) in [
            (libc::AF_INET, 132, stop),
            (libc::AF_INET6, 132, stop),
            (libc::AF_INET, 6, go),
            (libc::AF_UNIX, 132, go),
        ] {
            let args = [family as u64, 1, protocol, 0, 0, 0];
            assert_eq!(does(libc::SYS_socket, args), result, "{family} {protocol}");
        }
        for (command, result) in
            [(libc::F_DUPFD, stop), (libc::F_DUPFD_CLOEXEC, stop), (libc::F_GETFL, go)]
        {
            assert_eq!(does(libc::SYS_fcntl, [600, command as u64, 0, 0, 0, 0]), result);
            assert_eq!(does(libc::SYS_fcntl, [5, command as u64, 0, 0, 0, 0]), go);
        }
        assert_eq!(does(libc::SYS_splice, [3, 0, 600, 0, 1, 0]), stop);
        assert_eq!(does(libc::SYS_splice, [600, 0, 3, 0, 1, 0]), stop);
        assert_eq!(does(libc::SYS_splice, [3, 0, 4, 0, 1, 0]), go);
        assert_eq!(does(libc::SYS_dup3, [3, 600, 0, 0, 0, 0]), stop);
        assert_eq!(does(libc::SYS_dup3, [600, 3, 0, 0, 0, 0]), stop);
        assert_eq!(does(libc::SYS_dup3, [3, 4, 600, 0, 0, 0]), go);
        assert_eq!(does(libc::SYS_openat, [600, 0, 132, 0, 0, 0]), go);
    }

    #[test]
    fn system_calls_of_other_architectures_are_the_kernels() {
        let code = program(512);
        let number = libc::SYS_read as u32;
        let args = [600, 0, 0, 0, 0, 0];
        assert_eq!(run(&code, number, 0x4000_0003, args), libc::SECCOMP_RET_ALLOW);
        assert_eq!(run(&code, number | X32, ARCHITECTURE, args), libc::SECCOMP_RET_ALLOW);
        assert_eq!(run(&code, number, ARCHITECTURE, args), libc::SECCOMP_RET_USER_NOTIF);
    }
}
