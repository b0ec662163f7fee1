"""A hostile process of the user whose `oku run` it starts: it tries to look into every process of the stack.

`python neighbour.py OKU KILLS` prints a JSON object of what it got: `breaches` by process and way, the `keys`
that it found, how often a worker that it had killed was started again under its eyes (`restarts`), and the
`answers` of the coordinator to greetings that are not signed.
"""

import ctypes
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
"""Numbers of system calls, the same on all processors."""
_PTRACE_SEIZE, _PTRACE_DETACH, _WALL = 0x4206, 17, 0x40000000
_CHALLENGE_BYTES, _GREETING = 32, b"\x04"
_REFUSED = (errno.EPERM, errno.ESRCH, errno.EACCES)
"""Anything else means that the kernel would have let it."""
_DATA = Path("data")
_RUN = ("run", "--requests", "1M", "--delay", "1s", "--workers", "2", "--data-dir", str(_DATA))
_MOST_BYTES = 200_000_000
_LONGEST_S = 40.0


class Iovec(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Neighbour:
    """Keeps what it gets.

    Attributes:
        breaches: what was open to it, as "PROCESS: WAY".
        loot: all bytes that it could read.
        memories: memory that it holds open, by process.
    """

    def __init__(self) -> None:
        self.breaches: set[str] = set()
        self.loot: list[bytes] = []
        self.memories: dict[str, int] = {}

    def attack(self, name: str, pid: int) -> None:
        """Try all ways into a process."""
        for way in ("environ", "maps", "auxv", "smaps", "stack", "syscall", "io"):
            self._try(name, way, partial(self._read, Path(f"/proc/{pid}/{way}")))
        self._try(name, "fd", lambda: list(Path(f"/proc/{pid}/fd").iterdir()))
        for link in ("exe", "cwd", "fd/0", "fd/1", "fd/3"):
            self._try(name, link, Path(f"/proc/{pid}/{link}").readlink)
        self._try(name, "mem", lambda: self._open_memory(name, pid))
        own = Iovec(ctypes.cast(ctypes.create_string_buffer(8), ctypes.c_void_p), 8)
        arguments = (pid, ctypes.byref(own), 1, ctypes.byref(own), 1, 0)
        self._try_call(name, "process_vm_readv", lambda: _LIBC.process_vm_readv(*arguments))
        self._try_call(name, "process_vm_writev", lambda: _LIBC.process_vm_writev(*arguments))
        self._try_call(name, "ptrace", lambda: _seize(pid))
        pidfd = _LIBC.syscall(_PIDFD_OPEN, pid, 0)
        for number in range(32):
            steal = partial(_LIBC.syscall, _PIDFD_GETFD, pidfd, number, 0)
            self._try_call(name, "pidfd_getfd", steal, but=(errno.EBADF,))
        if pidfd >= 0:
            os.close(pidfd)

    def attack_newborn(self, pid: int) -> None:
        """What can be done within the first instructions of a process, and used later."""
        name = f"newborn {pid}"
        self._try(name, "mem", lambda: self._open_memory(name, pid))
        self._try(name, "environ", lambda: self._read(Path(f"/proc/{pid}/environ")))
        self._try_call(name, "ptrace", lambda: _seize(pid))

    def read_memories(self) -> None:
        """Read all writable memory of the processes whose memory it holds."""
        for name, memory in self.memories.items():
            with suppress(OSError):
                for start, stop in _list_areas(int(name.split()[1])):
                    with suppress(OSError):
                        self.loot.append(os.pread(memory, min(stop - start, _MOST_BYTES), start))

    def _try(self, name: str, way: str, get: Callable[[], object]) -> None:
        try:
            get()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno in _REFUSED:
                return
        self.breaches.add(f"{name.split(maxsplit=1)[0]}: {way}")

    def _try_call(self, name: str, way: str, call: Callable[[], int], but: tuple[int, ...] = ()) -> None:
        ctypes.set_errno(0)
        if call() < 0 and ctypes.get_errno() in (*_REFUSED, *but):
            return
        self.breaches.add(f"{name.split(maxsplit=1)[0]}: {way}")

    def _read(self, path: Path) -> None:
        self.loot.append(path.read_bytes())

    def _open_memory(self, name: str, pid: int) -> None:
        key = f"{name.split(maxsplit=1)[0]} {pid}"
        if key not in self.memories:
            self.memories[key] = os.open(f"/proc/{pid}/mem", os.O_RDWR)


def _seize(pid: int) -> int:
    result: int = _LIBC.ptrace(_PTRACE_SEIZE, pid, None, None)
    if result == 0:
        # A tracee can only be let go when it stops; it may be about to die.
        with suppress(ChildProcessError, ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            os.waitpid(pid, _WALL)
            _LIBC.ptrace(_PTRACE_DETACH, pid, None, None)
            os.kill(pid, signal.SIGCONT)
    return result


def _list_areas(pid: int) -> Iterator[tuple[int, int]]:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        area, rights, *_ = line.split()
        if rights.startswith("rw"):
            start, stop = (int(number, 16) for number in area.split("-"))
            yield start, stop


def _list_children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _list_descendants(pid: int) -> Iterator[int]:
    for child in _list_children(pid):
        yield child
        yield from _list_descendants(child)


def _read_stack() -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads((_DATA / "stack.json").read_text())
    except (OSError, ValueError):
        return {"children": {}}
    return document


def _are_all_there() -> bool:
    """Whether the coordinator has heard both workers, so that all processes have their keys."""
    stack = _read_stack()
    with suppress(OSError, KeyError):
        asking = Request(f"{stack['url']}/metrics", headers={"Authorization": f"Bearer {stack['token']}"})
        with urlopen(asking, timeout=5) as response:
            return any(line.startswith(b"oku_workers 2") for line in response)
    return False


def _watch_births(neighbour: Neighbour, run: int, name: str, kills: int) -> int:
    """Kill a process of the stack several times, and attack what is started in its place from its birth."""
    restarts, deadline = 0, time.monotonic() + _LONGEST_S
    while restarts < kills and time.monotonic() < deadline:
        known = set(_list_children(run))
        old = _read_stack()["children"][name]
        os.kill(old, signal.SIGKILL)
        born: set[int] = set()
        while time.monotonic() < deadline and _read_stack()["children"].get(name, old) == old:
            born |= set(_list_children(run)) - known
            until = time.monotonic() + 0.02
            while time.monotonic() < until:
                for pid in set(_list_children(run)) - known:
                    born.add(pid)
                    neighbour.attack_newborn(pid)
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            for pid in born:
                neighbour.attack_newborn(pid)
        restarts += bool(born)
    return restarts


def _greet_coordinator(greeting: bytes) -> str:
    """What the coordinator sends to a process that does not sign its greeting, behind the challenge."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(_DATA / "workers.sock"))
        connection.recv(_CHALLENGE_BYTES, socket.MSG_WAITALL)
        connection.sendall(len(greeting).to_bytes(4, "big") + _GREETING + greeting)
        return connection.recv(200).decode()


def main() -> None:
    """Start a run, attack it, end it, and tell."""
    run = subprocess.Popen([*json.loads(sys.argv[1]), *_RUN], stdout=subprocess.DEVNULL)
    neighbour = Neighbour()
    try:
        deadline = time.monotonic() + _LONGEST_S
        while not _are_all_there() and time.monotonic() < deadline:
            time.sleep(0.05)
        stack = _read_stack()
        names = {run.pid: "run"} | dict.fromkeys(_list_descendants(run.pid), "server")
        names |= {pid: name for name, pid in stack["children"].items()}
        for pid, name in names.items():
            neighbour.attack(name, pid)
        restarts = _watch_births(neighbour, run.pid, "worker-1", int(sys.argv[2]))
        neighbour.read_memories()
        keys = {"token": stack["token"].encode()}
        unsigned = b'{"protocol":12,"body":"{}","signature":""}'
        answers = [_greet_coordinator(greeting) for greeting in (b"", b"{", unsigned)]
    finally:
        run.kill()
        run.wait()
    sys.stdout.write(
        json.dumps(
            {
                "attacked": sorted(set(names.values())),
                "breaches": sorted(neighbour.breaches),
                "keys": [name for name, key in keys.items() if any(key in loot for loot in neighbour.loot)],
                "restarts": restarts,
                "answers": answers,
            }
        )
    )


if __name__ == "__main__":
    main()
