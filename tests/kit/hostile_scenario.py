"""A scenario that tries to reach what is not its own, and tells a test all that it could do.

It asks its host for what there is to reach (`/world`), and posts what it could do (`/found`). It runs as a
file of its own, so it imports nothing of the tests.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from oku import Http

_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE_ATTACH, _PTRACE_DETACH, _WALL = 16, 17, 0x40000000
_PIDFD_GETFD = 438
_PR_SET_PDEATHSIG = 1
_OF_PROCESSES = ("environ", "mem", "maps", "fd", "task", "auxv", "io", "stack")
_MOST_PIDS = 50_000
_DAEMON_S = 60


def setup() -> dict[str, str]:
    """Try something before, in a process of its own."""
    places = ("/etc/passwd", "/proc/self/environ", "/")
    return dict(list_successes({f"look into {place} in setup": partial(look, place) for place in places}))


async def scenario(http: Http, setup_data: dict[str, str]) -> None:
    """Try everything once."""
    world = await http.get("/world").json()
    close_folder()
    await http.post("/found", json={"done": setup_data | try_all(world), "daemon": leave_daemon()})


def try_all(world: dict[str, Any]) -> dict[str, str]:
    """Try everything; gives what succeeded, with what came of it."""
    roles = {pid: role for role, pid in world["processes"].items()} | {os.getpid(): "itself"}
    attempts: dict[str, Callable[[], object]] = {
        "list processes": partial(look, "/proc"),
        "list shared memory": partial(look, "/dev/shm"),
        "list the root": partial(look, "/"),
        "abstract socket": partial(connect, "\0" + world["abstract"]),
        "socket of the workers": partial(greet_coordinator, world["socket"]),
    }
    for pid in {*list_processes(), *roles}:
        name = roles.get(pid, "another process")
        for kind in _OF_PROCESSES:
            attempts[f"{kind} of {name}"] = partial(look, f"/proc/{pid}/{kind}")
    for pid, name in roles.items():
        if name != "itself":
            attempts[f"signal {name}"] = partial(os.kill, pid, 0)
            attempts[f"signal {name} by a descriptor"] = partial(signal_descriptor, pid)
            attempts[f"trace {name}"] = partial(trace, pid)
            attempts[f"take a file of {name}"] = partial(take_file, pid)
    for name, path in world["files"].items():
        attempts[f"read {name}"] = partial(look, path)
        attempts[f"read {name} in another process"] = partial(look_elsewhere, path)
        attempts[f"overwrite {name}"] = partial(overwrite, path)
        attempts[f"truncate {name}"] = partial(truncate, path)
        attempts[f"link {name}"] = partial(link, path)
    for name, path in world["folders"].items():
        attempts[f"list {name}"] = partial(look, path)
        attempts[f"write to {name}"] = partial(write, path)
    return dict(list_successes(attempts))


def list_successes(attempts: dict[str, Callable[[], object]]) -> Iterator[tuple[str, str]]:
    """What can be done, and what came of it."""
    for name, attempt in attempts.items():
        with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
            yield name, repr(attempt())[:4000]


def list_processes() -> list[int]:
    """Those of its user, and their threads, without listing anything."""
    newest = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    newest.wait()
    found = []
    for pid in range(max(1, newest.pid - _MOST_PIDS), newest.pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}").stat().st_uid == os.getuid():
                found.append(pid)
    return found


def look(place: str) -> object:
    """Read the beginning of a file, or the names in a folder; of memory it is enough to open it."""
    path = Path(place)
    if path.is_dir():
        return [each.name for each in path.iterdir()]
    with path.open("rb") as file:
        return "opened" if path.name == "mem" else file.read(4096)


def look_elsewhere(path: str) -> object:
    """Have another program read a file."""
    return subprocess.run(["cat", path], check=True, capture_output=True).stdout[:200]


def overwrite(path: str) -> None:
    """Open a file to write to it."""
    os.close(os.open(path, os.O_WRONLY))


def truncate(path: str) -> None:
    """Cut a file off, behind its end."""
    os.truncate(path, Path(path).stat().st_size)


def signal_descriptor(pid: int) -> None:
    """Signal a process by a descriptor of it."""
    file = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(file, 0)
    finally:
        os.close(file)


def trace(pid: int) -> object:
    """Trace a process, and let it go."""
    check(_LIBC.ptrace(_PTRACE_ATTACH, pid, 0, 0))
    os.waitpid(pid, _WALL)
    return check(_LIBC.ptrace(_PTRACE_DETACH, pid, 0, 0))


def take_file(pid: int) -> None:
    """Copy the first descriptor of a process."""
    file = os.pidfd_open(pid)
    try:
        os.close(check(_LIBC.syscall(_PIDFD_GETFD, file, 0, 0)))
    finally:
        os.close(file)


def check(result: int) -> int:
    """The result of a system call; `OSError` if it was refused."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def link(path: str) -> object:
    """Give a file another name, which is in the folder of user code, and read it there."""
    here = Path("linked")
    here.hardlink_to(path)
    try:
        return here.read_bytes()[:200]
    finally:
        here.unlink()


def write(folder: str) -> object:
    """Make a file in a folder."""
    file = Path(folder, f"written by {os.getpid()}")
    file.write_text("x")
    file.unlink()
    return "written"


def connect(address: str) -> object:
    """Connect to a socket of this machine."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
    return "connected"


def greet_coordinator(path: str) -> object:
    """What the coordinator answers to a greeting without a signature; raises if it hangs up."""
    greeting = b'{"protocol":12,"body":"{}","signature":""}'
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(path)
        client.recv(32)
        client.sendall(len(greeting).to_bytes(4, "big") + b"\x04" + greeting)
        answer = client.recv(200)
    if not answer:
        raise OSError("it has hung up")
    return answer


def close_folder() -> None:
    """Leave something in a folder that nobody may enter."""
    folder = Path("closed", "folder")
    folder.mkdir(parents=True)
    (folder / "left").touch()
    folder.chmod(0)
    folder.parent.chmod(0)


def leave_daemon() -> int:
    """A process that is to outlive this one: nobody's child, in a session of its own, deaf to signals."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        _LIBC.prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            os.closerange(0, 100)
            time.sleep(_DAEMON_S)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return int(pipe.read())
