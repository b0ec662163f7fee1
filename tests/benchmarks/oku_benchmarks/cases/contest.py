"""Load generators keep to one rate, in turn: what one target saw of it, and what it cost.

The target notes when each request arrived, stamped by the kernel, the same for all. Processor time is that of
all processes of a tool, between 20 % and 90 % of its requests, so that starting up is not in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.machine import Occasion, fetch_occasion
from oku_benchmarks.measuring.observer import cut_window
from oku_benchmarks.measuring.punctuality import Punctuality, judge_arrivals
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.arrival_target import ArrivalTarget, Manner, open_records_folder
from oku_benchmarks.turns.oku_turn import AIOHTTP, HTTPTOOLS, Load
from oku_benchmarks.turns.paced_rivals import PACED_RIVALS, Pace
from oku_benchmarks.turns.paced_turn import CONNECTIONS, PacedTurn, play_paced_oku, play_paced_rival
from oku_benchmarks.turns.turn import Stage

OKU, OKU_2, OKU_4, OKU_AIOHTTP = "oku", "oku, 2 workers", "oku, 4 workers", "oku, aiohttp"
_BEGIN, _END = 0.2, 0.9
_LOOK_S = 0.2
_SPARE = 1.3
"""A tool may send more than it was asked for; records are kept of so many."""


@dataclass(frozen=True)
class _Kind:
    """A way to run Oku."""

    engine: str
    workers: int
    most_rps: int = 1_000_000


_KINDS: Mapping[str, _Kind] = {
    OKU: _Kind(HTTPTOOLS, 1),
    OKU_2: _Kind(HTTPTOOLS, 2),
    OKU_4: _Kind(HTTPTOOLS, 4),
    OKU_AIOHTTP: _Kind(AIOHTTP, 1, most_rps=5_000),
}


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one contestant.

    Attributes:
        number: of the round.
        contestant: its name.
        punctuality: what the target saw.
        cpu_us: processor time of a request, all processes of the tool together.
        cpu_share: of one core.
        cpu_us_by_process: the same for each process.
        own_p99_ms: the p99 of the lateness that Oku itself reports; None for others.
    """

    number: int
    contestant: str
    punctuality: Punctuality
    cpu_us: float
    cpu_share: float
    cpu_us_by_process: dict[str, float]
    own_p99_ms: float | None


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """All turns at one rate, in the order in which they were taken.

    Attributes:
        rate: that was asked for, in requests per second.
        seconds: for how long.
        rounds: the turns.
        occasion: when they were taken, and beside what.
    """

    rate: int
    seconds: int
    rounds: list[Round]
    occasion: Occasion

    def pick(self, name: str, figure: Callable[[Round], float]) -> list[float]:
        """One figure of a contestant, round by round."""
        return [figure(entry) for entry in self.rounds if entry.contestant == name]


@dataclass(frozen=True, kw_only=True)
class Course:
    """What all contestants are asked for, and where.

    Args:
        program: the arrival server.
        folder: for files.
        rate: requests per second.
        seconds: for how long.
    """

    program: Path
    folder: Path
    rate: int
    seconds: int


def hold_contest(course: Course, rounds: int, rivals: Sequence[str]) -> Contest:
    """Let Oku in all its kinds, and those of the others that are there, take turns."""
    occasion = fetch_occasion()
    kinds = [name for name, kind in _KINDS.items() if course.rate <= kind.most_rps]
    return Contest(
        rate=course.rate,
        seconds=course.seconds,
        rounds=[
            _measure_round(course, name, number)
            for number in range(1, rounds + 1)
            for name in (*kinds, *rivals)
        ],
        occasion=occasion,
    )


def _measure_round(course: Course, name: str, number: int) -> Round:
    manner = Manner(requests=int(course.rate * course.seconds * _SPARE))
    with (
        open_records_folder(course.folder) as records,
        ArrivalTarget(course.program, records, manner) as target,
    ):
        played = _play(name, Stage(target, course.folder, look_s=_LOOK_S), course)
        arrivals = target.read_arrivals()
    if len(arrivals) < 2:
        raise BenchmarkError(f"{name} sent {len(arrivals)} requests")
    window = cut_window(played.turn.samples, _BEGIN * len(arrivals), _END * len(arrivals))
    cpu_s = {process: window.measure_cpu_s(process) for process in window.begin.vitals}
    result = Round(
        number=number,
        contestant=name,
        punctuality=judge_arrivals(arrivals, course.rate, course.seconds),
        cpu_us=round(sum(cpu_s.values()) / window.sent * 1e6, 2),
        cpu_share=round(sum(cpu_s.values()) / window.length_s, 3),
        cpu_us_by_process={process: round(each / window.sent * 1e6, 2) for process, each in cpu_s.items()},
        own_p99_ms=played.lateness.p99_ms if played.lateness else None,
    )
    seen = result.punctuality
    log(
        f"  round {number}, {course.rate:,}/s, {name}: {seen.arrived:,} of {seen.planned:,} requests,"
        f" {seen.off_seconds} seconds off, lateness p99 {seen.lateness.p99:.2f} ms,"
        f" {result.cpu_us:.1f} µs of processor time each"
    )
    return result


def _play(name: str, stage: Stage, course: Course) -> PacedTurn:
    if name not in _KINDS:
        url = stage.target.url.format(i=1)
        pace = Pace(url=url, rate=course.rate, seconds=course.seconds, connections=CONNECTIONS)
        return play_paced_rival(stage, PACED_RIVALS[name], pace)
    kind = _KINDS[name]
    load = Load(
        engine=kind.engine,
        workers=kind.workers,
        concurrency=CONNECTIONS // kind.workers,
        rate=f"{course.rate}/s",
        duration=f"{course.seconds}s",
    )
    return play_paced_oku(stage, load)
