"""`./task setup:peers` installs the load generators that a compiler builds: those of Go, of Rust and of C.

Each is built once, of the version that is pinned here, into `.peers`. What cannot be built is said and left
out, as are wrk, h2load, nghttpd and nginx when the system does not have them: nothing here fails.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.progress import log

PEERS = Path(".peers")


@dataclass(frozen=True)
class Built:
    """A program that is built here: its package and version, and its compiler, `go`, `cargo` or `make`.

    A package for `make` is a git repository, its version a commit; the program is called `wrk` there.
    """

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
    "wrk2": Built("make", "https://github.com/giltene/wrk2", "44a94c1"),
}
SYSTEM: Mapping[str, str] = {
    "nginx": "nginx-light",
    "wrk": "wrk",
    "h2load": "nghttp2-client",
    "nghttpd": "nghttp2-server",
    "openssl": "openssl",
}
"""Programs of the system, and what Debian calls their packages."""


def find_program(name: str) -> str | None:
    """The path of a program, ours before the system's; None when it is not there."""
    folders = [str(PEERS.absolute() / "bin"), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]
    return shutil.which(name, path=os.pathsep.join(folders))


def require_program(name: str) -> str:
    """The path of a program that a benchmark cannot do without; `BenchmarkError` when it is not there."""
    program = find_program(name)
    if program is None:
        raise BenchmarkError(describe_missing(name))
    return program


def describe_missing(name: str) -> str:
    """How to get a program that is not there."""
    if name in SYSTEM:
        return f"{name} is not installed (Debian: apt install {SYSTEM[name]})"
    built = BUILT[name]
    return f"{name} could not be built with {built.compiler} ({built.package} {built.version})"


def install(name: str, built: Built) -> None:
    """Build one program unless its version is there already."""
    stamp = PEERS / f"{name}-{built.version}.stamp"
    if stamp.exists():
        return
    compiler = shutil.which(built.compiler)
    if compiler is None:
        log(f"bench: {name} is left out: there is no {built.compiler} to build it")
        return
    log(f"bench: building {name} {built.version}, which may take minutes")
    result = subprocess.run(
        _build_command(name, compiler, built),
        env=os.environ | {"GOBIN": str(PEERS.absolute() / "bin")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode:
        reason = (result.stdout.strip().splitlines() or ["no reason given"])[-1].strip()
        log(f"bench: {name} is left out, it could not be built: {reason}")
        return
    stamp.touch()


def _build_command(name: str, compiler: str, built: Built) -> list[str]:
    if built.compiler == "go":
        return [compiler, "install", f"{built.package}@{built.version}"]
    if built.compiler == "make":
        script = (
            'rm -rf "$1" && git clone --quiet "$2" "$1" && git -C "$1" checkout --quiet "$3"'
            ' && "$0" -C "$1" && cp "$1/wrk" "$4"'
        )
        source, program = (str(PEERS.absolute() / path) for path in (f"source-{name}", f"bin/{name}"))
        return ["sh", "-c", script, compiler, source, built.package, built.version, program]
    return [
        compiler, "install", built.package, "--version", built.version, "--locked", "--quiet",
        "--root", str(PEERS.absolute()),
    ]  # fmt: skip


def main() -> int:
    """Install what can be installed, and say what is missing."""
    (PEERS / "bin").mkdir(parents=True, exist_ok=True)
    for name, built in BUILT.items():
        install(name, built)
    for name in SYSTEM:
        if find_program(name) is None:
            log(f"bench: {describe_missing(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
