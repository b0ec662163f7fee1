"""`./task setup:peers` builds the load generators that are no Python packages: those of Go and Rust.

Each is built once, in the version pinned here, into `.peers`. What is missing is reported and left out.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from oku_benchmarks.report import BenchmarkError, log

PEERS = Path(".peers")


class Built(NamedTuple):
    """A program to build with `go` or `cargo`."""

    compiler: str
    package: str
    version: str


BUILT: Mapping[str, Built] = {
    "hey": Built("go", "github.com/rakyll/hey", "v0.1.5"),
    "vegeta": Built("go", "github.com/tsenart/vegeta/v12", "v12.12.0"),
    "k6": Built("go", "go.k6.io/k6", "v1.8.1"),
    # Newer ones need modules that not every proxy has.
    "fortio": Built("go", "fortio.org/fortio", "v1.66.5"),
    "oha": Built("cargo", "oha", "1.16.0"),
}
SYSTEM: Mapping[str, str] = {
    "nginx": "nginx-light",
    "wrk": "wrk",
    "h2load": "nghttp2-client",
    "openssl": "openssl",
}
"""Programs of the system, and their Debian packages."""


def find_program(name: str) -> str | None:
    """The path of a program, ours before the system's; None when it is not there."""
    folders = [str(PEERS.absolute() / "bin"), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]
    return shutil.which(name, path=os.pathsep.join(folders))


def require_program(name: str) -> str:
    """The path of a program; `BenchmarkError` when it is not there."""
    program = find_program(name)
    if program is None:
        raise BenchmarkError(describe_missing(name))
    return program


def describe_missing(name: str) -> str:
    """How to get a program that is not there."""
    if name in SYSTEM:
        return f"{name} is not installed (Debian: apt install {SYSTEM[name]})"
    if name in BUILT:
        return f"{name} could not be built with {BUILT[name].compiler}"
    return f"{name} is not installed"


def list_missing(programs: Iterable[str]) -> list[str]:
    """A note for those that are left out because they are not there; no note if there are none."""
    reasons = [describe_missing(name) for name in sorted(set(programs))]
    return [f"Left out: {'; '.join(reasons)}."] * bool(reasons)


def install(name: str, built: Built) -> None:
    """Build one program unless its version is there."""
    stamp = PEERS / f"{name}-{built.version}.stamp"
    if stamp.exists():
        return
    compiler = shutil.which(built.compiler)
    if compiler is None:
        log(f"bench: {name} is left out: there is no {built.compiler} to build it")
        return
    log(f"bench: building {name} {built.version}, which may take minutes")
    environment = os.environ | {"GOBIN": str(PEERS.absolute() / "bin")}
    done = subprocess.run(
        _build_command(name, compiler, built), env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1].strip()
        log(f"bench: {name} is left out, it could not be built: {reason}")
        return
    stamp.touch()


def _build_command(name: str, compiler: str, built: Built) -> list[str]:
    if built.compiler == "go":
        return [compiler, "install", f"{built.package}@{built.version}"]
    return [
        compiler, "install", built.package, "--version", built.version, "--locked", "--quiet",
        "--root", str(PEERS.absolute()),
    ]  # fmt: skip


def main() -> int:
    """Build what can be built, and report what is missing."""
    (PEERS / "bin").mkdir(parents=True, exist_ok=True)
    for name, built in BUILT.items():
        install(name, built)
    for name in SYSTEM:
        if find_program(name) is None:
            log(f"bench: {describe_missing(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
