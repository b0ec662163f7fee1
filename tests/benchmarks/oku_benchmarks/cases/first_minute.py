"""The first minute with Oku, oha, k6 and Locust: install, the first test of a service, the first report.

Each line is typed into a terminal, in an empty folder, at the same small HTTP server on loopback; then again
at one that answers every request with status 500, and at a port where nobody listens.
"""

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from oku_benchmarks.cases.first_install import Installation, find_bin, install
from oku_benchmarks.install import BUILT, describe_missing, find_program
from oku_benchmarks.measuring.target import Target
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.delay_server import DelayServer
from oku_benchmarks.turns.first_lines import FIRST_LINES, FirstLine
from oku_benchmarks.turns.stopwatch import Command, Timing, time_command

ANSWERS_500, NOBODY_LISTENS = "answers 500", "nobody listens"


class FirstTest(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of one of them, at a service that answers."""

    number: int
    """Of the round."""
    name: str
    timing: Timing


class FirstReport(msgspec.Struct, frozen=True, kw_only=True):
    """A line that should write a report."""

    number: int
    """Of the round."""
    name: str
    file: str
    timing: Timing
    size_kb: float | None
    """None when there is no report afterwards."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The first line at a service that fails."""

    name: str
    service: str
    timing: Timing


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of the first minute, in the order in which it was measured."""

    installations: list[Installation]
    tests: list[FirstTest]
    reports: list[FirstReport]
    failures: list[Failure]
    missing: dict[str, str]
    """Those that are not there, and why."""


def measure(plan: Plan, folder: Path) -> Results:
    """Install, then type."""
    missing = {
        name: describe_missing(name) for name in FIRST_LINES if name in BUILT and not find_program(name)
    }
    for reason in missing.values():
        log(f"  left out: {reason}")
    lines = {name: line for name, line in FIRST_LINES.items() if name not in missing}
    installations = [entry for name in lines for entry in install(name, folder)]
    desk = _Desk(folder, {name: find_bin(name, folder) for name in lines})
    rounds = range(1, plan.rounds + 1)
    with DelayServer(_clear(folder / "service")) as service:
        tests = [
            FirstTest(number=number, name=name, timing=desk.type(name, line.line, service))
            for number in rounds
            for name, line in lines.items()
        ]
        reports = [
            desk.write_report(number, name, file, service)
            for number in rounds
            for name, line in lines.items()
            for file in line.reports
        ]
    with DelayServer(_clear(folder / "failing"), error_rate=1.0) as failing:
        failures = _fail(desk, lines, ANSWERS_500, failing)
    failures += _fail(desk, lines, NOBODY_LISTENS, _Nobody())
    return Results(
        installations=installations, tests=tests, reports=reports, failures=failures, missing=missing
    )


def _fail(desk: "_Desk", lines: Mapping[str, FirstLine], service: str, target: Target) -> list[Failure]:
    return [
        Failure(name=name, service=service, timing=desk.type(name, line.line, target))
        for name, line in lines.items()
    ]


class _Nobody:
    """A port where nobody listens."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}/{{i}}"

    def read_served(self) -> int:
        return 0


class _Desk:
    """Where a newcomer types: an empty folder for each line, and nothing set up before.

    Args:
        folder: of these folders; the one of the last line stays.
        bins: the folders of the programs, by what they are called.
    """

    def __init__(self, folder: Path, bins: Mapping[str, Path]) -> None:
        self._folder = folder / "desk"
        self._bins = bins

    def type(self, name: str, line: str, target: Target) -> Timing:
        """Type a line for one of them."""
        command = Command(
            words=FIRST_LINES[name].split(line, target.url.format(i="")),
            folder=_clear(self._folder),
            environment={
                "HOME": str(self._folder),
                "PATH": f"{self._bins[name]}{os.pathsep}{os.defpath}",
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                "K6_NO_USAGE_REPORT": "true",  # nothing leaves this machine
            },
            result=FIRST_LINES[name].result,
        )
        timing = time_command(command, target)
        log(f"  {name}: {timing.requests:,} requests, exit code {timing.exit_code} after {timing.prompt_s} s")
        return timing

    def write_report(self, number: int, name: str, file: str, target: Target) -> FirstReport:
        """Type the line that should write a report, and look for it."""
        timing = self.type(name, FIRST_LINES[name].reports[file], target)
        sizes = [path.stat().st_size for path in self._folder.glob(file)]
        return FirstReport(
            number=number,
            name=name,
            file=file,
            timing=timing,
            size_kb=round(sum(sizes) / 1e3, 1) if sizes else None,
        )


def _clear(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
