"""Keeps user code from changing how other processes run: their limits, priority, scheduling and processors.

The kernel lets a process do that to all others of its user, among them its worker, workers of others, and
what runs beside them. A seccomp filter refuses it (EPERM) for this process and for all that it starts: each
may change itself alone, and may look at others. Nothing removes a filter.
"""

import ctypes
import os
import platform
import struct
from typing import NamedTuple

_SET_MODE_FILTER, _SPEC_ALLOW = 1, 1 << 2
"""Of linux/seccomp.h. With the second, speculation stays as it is. Otherwise older kernels slow a filtered
process down against Spectre, which would be measured as latency."""
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF_0000, 0x0005_0001, 0x0005_0026
"""`SECCOMP_RET_ALLOW`, and `SECCOMP_RET_ERRNO` with EPERM and with ENOSYS."""
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""Instructions of linux/bpf_common.h: load a word, compare it with a constant, return a constant."""
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in `struct seccomp_data`; each argument has eight bytes, the lower four first."""
_X32 = 0x4000_0000
"""Numbers from here on are calls of a second kind, on x86-64 alone."""
_OF_A_USER = {"setpriority": 2, "ioprio_set": 3}
"""`PRIO_USER` and `IOPRIO_WHO_USER`: all processes of a user."""


class _Architecture(NamedTuple):
    """Numbers that depend on the processor: those of linux/audit.h and asm/unistd.h."""

    audit: int
    seccomp: int
    calls: dict[str, int]


_ARCHITECTURES = {
    "x86_64": _Architecture(
        0xC000_003E,
        317,
        {
            "prlimit64": 302, "setpriority": 141, "ioprio_set": 251, "sched_setparam": 142,
            "sched_setscheduler": 144, "sched_setaffinity": 203, "sched_setattr": 314,
        },
    ),
    "aarch64": _Architecture(
        0xC000_00B7,
        277,
        {
            "prlimit64": 261, "setpriority": 140, "ioprio_set": 30, "sched_setparam": 118,
            "sched_setscheduler": 119, "sched_setaffinity": 122, "sched_setattr": 274,
        },
    ),
}  # fmt: skip


class _Program(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]  # ctypes' way


def filter_system_calls() -> bool:
    """Refuse this process, and all that it starts, to change others; for a process with `NO_NEW_PRIVS`.

    Returns whether that is so: not on other processors, nor where the kernel has no such filters.
    """
    architecture = _ARCHITECTURES.get(platform.machine())
    if architecture is None:
        return False
    instructions = _build_filter(architecture, os.getpid())
    program = _Program(len(instructions), b"".join(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    seccomp = ctypes.c_long(architecture.seccomp)
    return bool(
        libc.syscall(
            seccomp, ctypes.c_ulong(_SET_MODE_FILTER), ctypes.c_ulong(_SPEC_ALLOW), ctypes.byref(program)
        )
        == 0
    )


def _build_filter(architecture: _Architecture, own: int) -> list[bytes]:
    """The program of a filter for the process `own`."""
    program = [
        _do(_LOAD, _ARCHITECTURE),
        _do(_JUMP_EQUAL, architecture.audit, 1, 0),
        _do(_RETURN, _UNKNOWN),  # a call of another architecture has other numbers
        _do(_LOAD, _NUMBER),
        _do(_JUMP_AT_LEAST, _X32, 0, 1),
        _do(_RETURN, _UNKNOWN),
    ]
    for name, number in architecture.calls.items():
        rule = _build_rule(name, own)
        program += [_do(_JUMP_EQUAL, number, 0, len(rule)), *rule]
    return [*program, _do(_RETURN, _ALLOW)]


def _build_rule(name: str, own: int) -> list[bytes]:
    """The rule for a call that could change another process: it may change this one, and look at others."""
    rule = []
    if name == "prlimit64":  # without new limits it tells those that there are
        rule += [
            _do(_LOAD, _find_argument(2)), _do(_JUMP_EQUAL, 0, 0, 3),
            _do(_LOAD, _find_argument(2) + 4), _do(_JUMP_EQUAL, 0, 0, 1),
            _do(_RETURN, _ALLOW),
        ]  # fmt: skip
    process = 0
    if name in _OF_A_USER:
        process = 1
        rule += [
            _do(_LOAD, _find_argument(0)), _do(_JUMP_EQUAL, _OF_A_USER[name], 0, 1),
            _do(_RETURN, _REFUSE),
        ]  # fmt: skip
    return [
        *rule,
        _do(_LOAD, _find_argument(process)),
        _do(_JUMP_EQUAL, 0, 1, 0),
        _do(_JUMP_EQUAL, own, 0, 1),
        _do(_RETURN, _ALLOW),
        _do(_RETURN, _REFUSE),
    ]


def _find_argument(number: int) -> int:
    return _ARGUMENTS + 8 * number


def _do(instruction: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """A `struct sock_filter`; a comparison skips `if_so` or `if_not` instructions."""
    return struct.pack("=HBBI", instruction, if_so, if_not, value)
