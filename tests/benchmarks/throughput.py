"""One Oku worker, a loop written by hand and Locust take turns: same target, as many requests in flight.

Processor time and rate are those between 20 % and 90 % of the requests, for all alike: no start-up, no
opening of connections and no winding down is in them.
"""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from .error import BenchmarkError
from .observer import cut_window, find_last_cpu_s
from .oku_turn import WORKER, open_data_dir, play_oku
from .plan import Plan
from .progress import log
from .target import Target
from .turn import Stage, Turn

OKU, BARE_LOOP, LOCUST = "oku", "bare loop", "locust"
_BEGIN, _END = 0.2, 0.9


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one contestant."""

    number: int
    contestant: str
    concurrency: int
    requests: int
    rate_rps: float
    requests_per_cpu_s: float
    cpu_share: float
    """Of one core, in the window."""
    whole_cpu_s: float
    """From the start of the process to its end: imports and connecting, too."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, in the order in which they were taken."""

    rounds: list[Round]
    missing: list[str]
    """Contestants that are not installed."""


def measure(plan: Plan, folder: Path) -> Results:
    """Let all contestants take their turns."""
    players: dict[str, Callable[[Stage, int, int], Turn]] = {
        BARE_LOOP: lambda stage, requests, concurrency: stage.play_script(
            "client", "bare_loop.py", requests, concurrency
        ),
        OKU: _play_oku,
        LOCUST: lambda stage, requests, users: stage.play_script("client", "locust_user.py", requests, users),
    }
    missing = [] if importlib.util.find_spec("locust") else [LOCUST]
    for name in missing:
        del players[name]
    with Target(folder) as target:
        stage = Stage(target, folder)
        rounds = [
            _measure_round(stage, players, name, concurrency, number, plan.throughput_requests)
            for concurrency in plan.concurrencies
            for number in range(1, plan.rounds + 1)
            for name in players
        ]
    return Results(rounds=rounds, missing=missing)


def _play_oku(stage: Stage, requests: int, concurrency: int) -> Turn:
    with open_data_dir(stage) as data_dir:
        return play_oku(stage, data_dir, requests=requests, concurrency=concurrency).turn


def _measure_round(
    stage: Stage,
    players: Mapping[str, Callable[[Stage, int, int], Turn]],
    name: str,
    concurrency: int,
    number: int,
    requests: int,
) -> Round:
    turn = players[name](stage, requests, concurrency)
    if turn.sent != requests:
        raise BenchmarkError(f"{name} sent {turn.sent} of {requests} requests")
    process = WORKER if name == OKU else "client"
    window = cut_window(turn.samples, _BEGIN * requests, _END * requests)
    cpu_s = window.measure_cpu_s(process)
    result = Round(
        number=number,
        contestant=name,
        concurrency=concurrency,
        requests=requests,
        rate_rps=round(window.rate_rps, 1),
        requests_per_cpu_s=round(window.sent / cpu_s, 1),
        cpu_share=round(cpu_s / window.length_s, 3),
        whole_cpu_s=find_last_cpu_s(turn.samples, process),
    )
    log(
        f"  round {number}, {concurrency} in flight, {name}: "
        f"{result.requests_per_cpu_s:,.0f} requests per CPU second, {result.rate_rps:,.0f}/s"
    )
    return result
