"""Starts a command as on a kernel without Landlock: a filter of system calls refuses those of it.

`python -m tests.kit.without_landlock COMMAND…`; what the command starts has none either.
"""

import ctypes
import errno
import os
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD_NUMBER = (0x20, 0, 0, 0)
"""Of the system call, which `struct seccomp_data` begins with (linux/seccomp.h)."""
_IS_ONE_OF_LANDLOCK = ((0x35, 0, 2, 444), (0x25, 1, 0, 446))
"""Not below the first number, and not above the last."""
_REFUSE, _ALLOW = (0x06, 0, 0, 0x00050000 | errno.ENOSYS), (0x06, 0, 0, 0x7FFF0000)


class _Program(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main() -> None:
    """Refuse the system calls of Landlock, and become the command."""
    filter_ = (_LOAD_NUMBER, *_IS_ONE_OF_LANDLOCK, _REFUSE, _ALLOW)
    program = _Program(len(filter_), b"".join(struct.pack("=HBBI", *each) for each in filter_))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "the filter of system calls was refused")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
