"""The load generators that keep to a rate: how each is told one, and where it says what it measured.

All get as many connections. Where a tool wants the rate for each connection, it gets its share of it. Threads
are what the tool's users get without asking, except for wrk2 and h2load, whose one thread is enough here.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oku_benchmarks.install import describe_missing, find_program
from oku_benchmarks.turns.rival_reports import (
    Reported,
    read_fortio,
    read_h2load,
    read_hey,
    read_k6,
    read_oha,
    read_vegeta,
    read_wrk2,
)
from oku_benchmarks.turns.turn import CONTESTANTS


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What all are asked for.

    Args:
        url: of the target.
        rate: requests per second, over all connections.
        seconds: how long.
        connections: the most that may be in flight.
    """

    url: str
    rate: int
    seconds: int
    connections: int


@dataclass(frozen=True, kw_only=True)
class PacedRival:
    """A load generator that keeps to a rate.

    Args:
        program: what it is run with.
        build: its command, given the program's path, what is asked and the file for its report.
        read: what it reports, given that file, or its output if it writes none.
        is_variant: whether another entry is the same program with fewer flags; only its report differs.
    """

    program: str
    build: Callable[[str, Pace, Path], Sequence[str]]
    read: Callable[[str], Reported]
    is_variant: bool = False

    def find(self) -> str | None:
        """The path of its program; None when it is missing."""
        return find_program(self.program)

    def describe_missing(self) -> str:
        """Why it is left out."""
        return describe_missing(self.program)

    def read_report(self, report: Path, output: Path) -> Reported:
        """What it said of itself."""
        if self.program == VEGETA:
            return self.read(_report_vegeta(report))
        return self.read((report if report.exists() else output).read_text(errors="replace"))


def _wrk2(program: str, pace: Pace, _: Path) -> list[str]:
    return [
        program, "-t1", f"-c{pace.connections}", f"-d{pace.seconds}s", f"-R{pace.rate}", "--latency", pace.url
    ]  # fmt: skip


def _h2load(program: str, pace: Pace, _: Path) -> list[str]:
    return [
        program, "--h1", "-t1", f"-c{pace.connections}", "-D", str(pace.seconds),
        "--rps", f"{pace.rate / pace.connections:g}", pace.url,
    ]  # fmt: skip


def _oha(program: str, pace: Pace, report: Path) -> list[str]:
    return [
        program, "--no-tui", "--output-format", "json", "--output", str(report), "-c", str(pace.connections),
        "-q", str(pace.rate), "-z", f"{pace.seconds}s", pace.url,
    ]  # fmt: skip


def _oha_corrected(program: str, pace: Pace, report: Path) -> list[str]:
    return [*_oha(program, pace, report), "--latency-correction"]


def _hey(program: str, pace: Pace, _: Path) -> list[str]:
    share = f"{pace.rate / pace.connections:g}"
    return [program, "-c", str(pace.connections), "-q", share, "-z", f"{pace.seconds}s", pace.url]


def _vegeta(program: str, pace: Pace, report: Path) -> list[str]:
    cap = ["-max-workers", str(pace.connections)]
    return [*_vegeta_uncapped(program, pace, report), "-workers", str(pace.connections), *cap]


def _vegeta_uncapped(program: str, pace: Pace, report: Path) -> list[str]:
    script = 'echo "GET $1" >"$2.targets"; shift; exec "$0" attack -targets "$1.targets" -output "$@"'
    return [
        "sh", "-c", script, program, pace.url, str(report), "-rate", f"{pace.rate}/1s",
        "-duration", f"{pace.seconds}s",
    ]  # fmt: skip


def _report_vegeta(report: Path) -> str:
    program = find_program(VEGETA)
    assert program is not None
    result = subprocess.run(
        [program, "report", "-type=json", str(report)], capture_output=True, text=True, check=True
    )
    return result.stdout


def _k6(program: str, pace: Pace, report: Path) -> list[str]:
    environment = {
        "TARGET": pace.url, "RATE": pace.rate, "SECONDS": pace.seconds, "CONNECTIONS": pace.connections
    }  # fmt: skip
    return [
        program, "run", "--quiet", "--no-usage-report", "--address", "", "--summary-export", str(report),
        *(word for name, value in environment.items() for word in ("-e", f"{name}={value}")),
        str(CONTESTANTS / "k6_rate.js"),
    ]  # fmt: skip


def _fortio(program: str, pace: Pace, report: Path) -> list[str]:
    return [
        program, "load", "-quiet", "-uniform", "-c", str(pace.connections), "-qps", str(pace.rate),
        "-t", f"{pace.seconds}s", "-r", "0.0001", "-p", "50,99", "-json", str(report), pace.url,
    ]  # fmt: skip


VEGETA, FORTIO, HEY, K6, WRK2, H2LOAD, OHA = "vegeta", "fortio", "hey", "k6", "wrk2", "h2load", "oha"
PACED_RIVALS: Mapping[str, PacedRival] = {
    WRK2: PacedRival(program=WRK2, build=_wrk2, read=read_wrk2),
    H2LOAD: PacedRival(program=H2LOAD, build=_h2load, read=read_h2load),
    OHA: PacedRival(program=OHA, build=_oha, read=read_oha),
    "oha, corrected": PacedRival(program=OHA, build=_oha_corrected, read=read_oha, is_variant=True),
    VEGETA: PacedRival(program=VEGETA, build=_vegeta, read=read_vegeta),
    "vegeta, no cap": PacedRival(program=VEGETA, build=_vegeta_uncapped, read=read_vegeta, is_variant=True),
    FORTIO: PacedRival(program=FORTIO, build=_fortio, read=read_fortio),
    HEY: PacedRival(program=HEY, build=_hey, read=read_hey),
    K6: PacedRival(program=K6, build=_k6, read=read_k6),
}
