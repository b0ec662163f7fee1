"""What a request costs Oku's worker and wrk in processor time and instructions, and where it goes.

Both take turns at nginx. The profile is taken in the middle of each turn, by sampling, which slows them by
little and alike; the instructions are counted beside, in runs of their own.
"""

from pathlib import Path

import msgspec

from oku_benchmarks.install import find_program
from oku_benchmarks.measuring.observer import cut_window
from oku_benchmarks.measuring.profile import Profiler
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns import instructions
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.oku_turn import HTTPTOOLS, WORKER, Load, open_data_dir, play_oku
from oku_benchmarks.turns.rivals import RIVALS, WRK, Effort
from oku_benchmarks.turns.turn import Stage, Turn

OKU = "oku"
CONNECTIONS = 100
_PROFILE_AFTER = 50_000
_EXPECTED_RPS = 120_000
_BEGIN, _END = 0.2, 0.9


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one of the two."""

    number: int
    contestant: str
    cpu_us: float
    """Of one request."""
    shares: dict[str, float]
    """Of that, by part; empty when it could not be profiled."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, and the instructions of user space for a request."""

    rounds: list[Round]
    instructions: dict[str, float]
    missing: list[str]
    """Programs that are not installed."""


def measure(plan: Plan, folder: Path) -> Results:
    """Rounds of turns, then the counting."""
    missing = [name for name in ("wrk", "perf", "valgrind") if find_program(name) is None]
    names = [OKU] if WRK in missing else [OKU, WRK]
    with Nginx(folder) as nginx:
        rounds = [
            _measure_round(nginx, folder, name, number, plan.peer_turn_s, is_profiled="perf" not in missing)
            for number in range(1, plan.rounds + 1)
            for name in names
        ]
        counts = {} if "valgrind" in missing else _count_instructions(nginx, folder, names)
    return Results(rounds=rounds, instructions=counts, missing=missing)


def _count_instructions(nginx: Nginx, folder: Path, names: list[str]) -> dict[str, float]:
    counters = {OKU: instructions.count_oku, WRK: instructions.count_wrk}
    counts = {name: counters[name](nginx, CONNECTIONS, folder) for name in names}
    log(f"  {', '.join(f'{name} {count:,.0f}' for name, count in counts.items())} instructions for a request")
    return counts


def _measure_round(
    nginx: Nginx, folder: Path, name: str, number: int, turn_s: int, *, is_profiled: bool
) -> Round:
    process = WORKER if name == OKU else "client"
    profiler = Profiler(process, _PROFILE_AFTER, turn_s / 2, folder)
    stage = Stage(nginx, folder, act=profiler.look) if is_profiled else Stage(nginx, folder)
    turn = _play_oku(stage, turn_s) if name == OKU else _play_wrk(stage, turn_s)
    window = cut_window(turn.samples, _BEGIN * turn.sent, _END * turn.sent)
    result = Round(
        number=number,
        contestant=name,
        cpu_us=round(window.measure_cpu_s(process) / window.sent * 1e6, 2),
        shares={part: round(share, 4) for part, share in profiler.read_shares().items()},
    )
    log(f"  round {number}, {name}: {result.cpu_us:.1f} µs of processor time each")
    return result


def _play_oku(stage: Stage, turn_s: int) -> Turn:
    load = Load(requests=turn_s * _EXPECTED_RPS, concurrency=CONNECTIONS, engine=HTTPTOOLS)
    with open_data_dir(stage.folder) as data_dir:
        return play_oku(stage, data_dir, load, is_shown=True).turn


def _play_wrk(stage: Stage, turn_s: int) -> Turn:
    rival = RIVALS[WRK]
    program = rival.find()
    assert program is not None
    effort = Effort(url=stage.target.url, connections=CONNECTIONS, seconds=turn_s, requests=0, account="")
    return stage.play("client", lambda _: rival.build(program, effort))
