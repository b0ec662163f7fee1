"""How long it takes to install a load generator as its documentation says, and how large it is.

What Python installs is installed twice, from an empty cache and from the cache that this has filled. What a
compiler builds was built by `./task setup:peers`, and only its size is told: people download it.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.install import BUILT, find_program
from oku_benchmarks.progress import log
from oku_benchmarks.turns.first_lines import OKU

_WHEELS = Path("dist")
_OWN_WHEEL = "dist/oku-*.whl"
"""What is typed for Oku, which no index has."""
_TIMEOUT_S = 300.0


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """One way to install one of them; None for what does not apply or is not known."""

    name: str
    typed: str
    """As people type it; empty for what they download."""
    cold_s: float | None
    """From an empty cache."""
    warm_s: float | None
    """From the cache that the first time has filled."""
    disk_mb: float
    """What is installed; of what is built, the program."""


@dataclass(frozen=True, kw_only=True)
class _Way:
    """One way to install a Python package.

    Args:
        typed: the line as people type it.
        commands: what is run for it.
        variable: of the environment, which names the cache.
        cache: the folder of the cache.
        installed: the folder of what is installed.
    """

    typed: str
    commands: Sequence[Sequence[str]]
    variable: str
    cache: Path
    installed: Path


def find_bin(name: str, folder: Path) -> Path:
    """The folder with the program of one of them, once `install` is through."""
    if name not in BUILT:
        return _find_venv(name, folder) / "bin"
    program = find_program(name)
    assert program is not None
    return Path(program).parent


def install(name: str, folder: Path) -> Iterator[Installation]:
    """Install one of them in every way that is measured; what is built is there already."""
    if name in BUILT:
        yield _describe_built(name)
        return
    package = str(_find_wheel()) if name == OKU else name
    yield _install_twice(name, _use_pip(name, package, folder))
    uvx = shutil.which("uvx")
    if uvx is None:
        log("  uvx is left out: it is not installed")
    else:
        yield _install_twice(name, _use_uvx(uvx, name, package, folder))


def _use_pip(name: str, package: str, folder: Path) -> _Way:
    venv = _find_venv(name, folder)
    return _Way(
        typed=f"python3 -m venv v; v/bin/pip install {_OWN_WHEEL if name == OKU else name}",
        commands=[
            [sys.executable, "-m", "venv", str(venv)],
            [str(venv / "bin" / "pip"), "install", package],
        ],
        variable="PIP_CACHE_DIR",
        cache=folder / f"{name}-pip-cache",
        installed=venv,
    )


def _use_uvx(uvx: str, name: str, package: str, folder: Path) -> _Way:
    cache = folder / f"{name}-uv-cache"
    return _Way(
        typed=f"uvx --from {_OWN_WHEEL} {name} --version" if name == OKU else f"uvx {name} --version",
        commands=[[uvx, "--python", sys.executable, "--from", package, name, "--version"]],
        variable="UV_CACHE_DIR",
        cache=cache,
        installed=cache,
    )


def _install_twice(name: str, way: _Way) -> Installation:
    environment = {**os.environ, way.variable: str(way.cache)}
    cold_s = _time_commands(way.commands, environment)
    if way.installed != way.cache:
        shutil.rmtree(way.installed)
    warm_s = _time_commands(way.commands, environment)
    log(f"  {way.typed}: {cold_s:.1f} s, from its cache {warm_s:.1f} s")
    return Installation(
        name=name,
        typed=way.typed,
        cold_s=cold_s,
        warm_s=warm_s,
        disk_mb=_measure_mb(way.installed),
    )


def _time_commands(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> float:
    began = time.monotonic()
    for command in commands:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if result.returncode:
            reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise BenchmarkError(f"{' '.join(command)}: {reason}")
    return round(time.monotonic() - began, 2)


def _describe_built(name: str) -> Installation:
    program = find_program(name)
    assert program is not None
    return Installation(
        name=name,
        typed="",
        cold_s=None,
        warm_s=None,
        disk_mb=round(Path(program).stat().st_size / 1e6, 1),
    )


def _find_wheel() -> Path:
    wheels = sorted(_WHEELS.absolute().glob("oku-*.whl"))
    if len(wheels) != 1:
        raise BenchmarkError(f"{_WHEELS} has {len(wheels)} wheels of oku, not 1: ./task build makes it")
    return wheels[0]


def _find_venv(name: str, folder: Path) -> Path:
    return folder / f"{name}-venv"


def _measure_mb(folder: Path) -> float:
    """What a folder takes, each file once however many names it has."""
    sizes = {
        (status.st_dev, status.st_ino): status.st_size
        for status in (path.lstat() for path in folder.rglob("*") if not path.is_dir())
    }
    return round(sum(sizes.values()) / 1e6, 1)
