"""On what a benchmark ran: the machine, and the versions of everything that takes part."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from oku_benchmarks.install import BUILT, find_program
from oku_cli.local import valkey
from oku_core.errors import UserError
from oku_workers.speedups.extension import IS_COMPILED

_PACKAGES = (
    "aiohttp", "yarl", "uvloop", "celery", "kombu", "redis", "msgspec",
    "locust", "gevent", "geventhttpclient", "requests", "requests-futures", "httptools", "ngh2", "matplotlib",
)  # fmt: skip
_PROGRAMS = {
    "nginx": (("-v",), r"nginx/(\S+)"),
    "wrk": (("-v",), r"wrk (\S+)"),
    "h2load": (("--version",), r"nghttp2/(\S+)"),
    "nghttpd": (("--version",), r"nghttp2/(\S+)"),
    "oha": (("--version",), r"oha (\S+)"),
    "k6": (("version",), r"k6 v(\S+)"),
    "fortio": (("version",), r"(\S+)"),
    "perf": (("--version",), r"version (\S+)"),
    "valgrind": (("--version",), r"valgrind-(\S+)"),
}
"""How a program tells its version, and where in its output that stands."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What it is, and how busy it was before; None where the system does not tell."""

    cpu: str
    cores: int
    memory_gb: float | None
    system: str
    load_before: float
    """Mean number of running processes in the minute before."""


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """When a part of a benchmark that can be measured by itself was measured, and beside what.

    Attributes:
        measured_at: when it began.
        commit: of Oku.
        load_before: mean number of running processes in the minute before.
        nice: of all that took part: below 0, it went before other work of the machine.
    """

    measured_at: str
    commit: str
    load_before: float
    nice: int

    def describe(self) -> str:
        """All of this, in a sentence."""
        beside = f"load before {self.load_before:g}" + (f", nice {self.nice}" if self.nice else "")
        return f"Measured on {self.measured_at}, Oku at {self.commit}, {beside}."


def fetch_occasion() -> Occasion:
    """The occasion of what begins now."""
    return Occasion(
        measured_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=fetch_commit(),
        load_before=round(os.getloadavg()[0], 2),
        nice=os.nice(0),
    )


def fetch_machine() -> Machine:
    """This machine, now."""
    release = ".".join(platform.release().split(".")[:2])
    return Machine(
        cpu=_find(r"model name\s*: (.+)", Path("/proc/cpuinfo")) or platform.machine(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gb=_fetch_memory_gb(),
        system=f"{platform.system()} {release}",
        load_before=round(os.getloadavg()[0], 2),
    )


def fetch_versions() -> dict[str, str]:
    """Of Python, the packages, the broker and the peers, and whether Oku's extension is compiled.

    What is not there is `missing`.
    """
    versions = {"python": platform.python_version(), "extension": "compiled" if IS_COMPILED else "missing"}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "missing"
    programs = {name: _fetch_program_version(name, *how) for name, how in _PROGRAMS.items()}
    # These do not tell the version that they were installed as.
    names = ("hey", "vegeta", "wrk2")
    pinned = {name: BUILT[name].version if find_program(name) else "missing" for name in names}
    return versions | programs | pinned | {"valkey": _fetch_valkey_version()}


def fetch_commit(folder: Path = Path()) -> str:
    """The commit of a checkout, with `+` for changes that are in none; `unknown` without git."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    commit = _read_output(git, "-C", str(folder), "rev-parse", "--short", "HEAD")
    changed = _read_output(
        git, "-C", str(folder), "status", "--porcelain", "--untracked-files=no", "--", "*.py", "requirements"
    )
    return f"{commit}{'+' if changed else ''}" if commit else "unknown"


def fetch_available_mb() -> float:
    """Memory that processes could still take, in MB of 10**6 bytes; 0 where the system does not tell."""
    available_kb = _find(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo"))
    return int(available_kb) * 1024 / 1e6 if available_kb else 0.0


def _fetch_memory_gb() -> float | None:
    total_kb = _find(r"MemTotal:\s*(\d+) kB", Path("/proc/meminfo"))
    return round(int(total_kb) * 1024 / 1e9, 1) if total_kb else None


def _fetch_program_version(name: str, arguments: Sequence[str], pattern: str) -> str:
    program = find_program(name)
    if program is None:
        return "missing"
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    match = re.search(pattern, result.stdout + result.stderr)
    return match[1] if match else "unknown"


def _fetch_valkey_version() -> str:
    try:
        program = valkey.find_server()
    except UserError:
        return "missing"
    match = re.search(r"v=(\S+)", _read_output(program, "--version"))
    return match[1] if match else "unknown"


def _find(pattern: str, path: Path) -> str | None:
    try:
        match = re.search(pattern, path.read_text())
    except OSError:
        return None
    return match[1].strip() if match else None


def _read_output(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""
