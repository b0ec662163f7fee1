"""A loopback of its own: a network namespace in which every port is free, whatever runs on the machine."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.kit.requirement import miss

_RAISE_LOOPBACK = """
import fcntl, socket, struct
SET_FLAGS, UP = 0x8914, 1
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH22x", b"lo", UP))
print("up", flush=True)
input()
"""
_AS_ROOT, _AS_USER = ("--net",), ("--user", "--map-root-user", "--net")


@dataclass(frozen=True)
class OwnLoopback:
    """A namespace that lives as long as the process that holds it."""

    holder: int
    flags: Sequence[str]

    def build_command(self, *command: str) -> list[str]:
        """A command that runs in it."""
        entered = [flag for flag in self.flags if flag != "--map-root-user"]
        kept = ["--preserve-credentials"] if "--user" in entered else []
        return ["nsenter", f"--target={self.holder}", *entered, *kept, "--", *command]


@contextmanager
def holding_loopback() -> Iterator[OwnLoopback]:
    """Gives a loopback; skips where the system allows none."""
    for flags in (_AS_ROOT, _AS_USER):
        with subprocess.Popen(
            ["unshare", *flags, sys.executable, "-c", _RAISE_LOOPBACK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            if holder.stdout.readline() == b"up\n":
                yield OwnLoopback(holder.pid, flags)
                return
    miss("the system allows no network namespace: run the test as root, or allow user namespaces")
