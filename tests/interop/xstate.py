"""Run a program without access to the registers that XSAVE holds.

User-mode Linux copies a process's registers by PTRACE_GETREGSET into a buffer of fixed size. On
processors with large states (AMX) they do not fit, and the kernel aborts while it boots. If the call
fails, user-mode Linux uses PTRACE_GETFPREGS, which knows the registers up to SSE only: its guest must
use no others (`ENVIRONMENT`).

    xstate.py PROGRAM [ARGUMENT ...]
"""

import ctypes
import os
import struct
import sys

#: For the guest: glibc uses no registers beyond SSE.
ENVIRONMENT = ("GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,"
               "-AVX_Fast_Unaligned_Load,-XSAVE,-XSAVEC")

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
EIO = 5
SYS_PTRACE, PTRACE_GETREGSET = 101, 0x4204
#: Offsets in `struct seccomp_data`.
NUMBER, FIRST_ARGUMENT = 0, 16


def rules() -> bytes:
    """ptrace(PTRACE_GETREGSET, ...) fails with EIO, everything else is allowed."""
    program = [
        (LOAD, 0, 0, NUMBER),
        (JUMP_IF_EQUAL, 0, 3, SYS_PTRACE),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_IF_EQUAL, 0, 1, PTRACE_GETREGSET),
        (RETURN, 0, 0, FAIL | EIO),
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *line) for line in program)


def forbid() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    filters = ctypes.create_string_buffer(rules())
    # struct sock_fprog: the number of instructions, and where they are.
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filters) // 8, ctypes.addressof(filters)))
    for call in [(PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)]:
        if libc.prctl(*call, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
