"""The target freezes for two seconds under a constant rate: who reports it?

All may have as many requests in flight, and the freeze is far longer than that lasts. So most of the requests
that were due in it are sent after it or never, and a tool that times them from when they were sent, or only
those that were sent, does not know of it: coordinated omission. Tools that need no such cap are asked once
more without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from oku_benchmarks.cases.freeze_plot import Bar, draw_freeze
from oku_benchmarks.documents.attachments import open_kept
from oku_benchmarks.measuring.freeze_waits import expect_waits_ms
from oku_benchmarks.measuring.machine import Occasion, fetch_occasion
from oku_benchmarks.plan import Freeze, Plan
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.arrival_target import (
    ArrivalTarget,
    Manner,
    Record,
    open_records_folder,
)
from oku_benchmarks.turns.oku_turn import HTTPTOOLS, Load
from oku_benchmarks.turns.paced_rivals import PACED_RIVALS, Pace
from oku_benchmarks.turns.paced_turn import (
    CONNECTIONS,
    Distribution,
    PacedTurn,
    play_paced_oku,
    play_paced_rival,
)
from oku_benchmarks.turns.rival_reports import Reported
from oku_benchmarks.turns.turn import Stage
from oku_core.accounting.histogram import find_rank

OKU, OKU_SEND, OKU_UNCAPPED = "oku", "oku, `--late send`", "oku, no cap"
PICTURE = "rates-freeze.svg"
DELAY_MS = 10.0


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A way to run Oku; 0 in flight is what it allows a rate by default."""

    concurrency: int = CONNECTIONS
    late: str = ""


_KINDS: Mapping[str, _Kind] = {
    OKU: _Kind(),
    OKU_SEND: _Kind(late="send"),
    OKU_UNCAPPED: _Kind(concurrency=0),
}


class FrozenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one contestant.

    Attributes:
        contestant: its name.
        arrived: requests that reached the target.
        reported: what the tool says of its latencies.
        response_time: what Oku says of the time from due to answered; None for others.
        lateness: what Oku says of the time from due to sent; None for others.
    """

    contestant: str
    arrived: int
    reported: Reported
    response_time: Distribution | None
    lateness: Distribution | None


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, and what somebody who asks at the planned times would have seen."""

    freeze: Freeze
    truth: Distribution
    turns: list[FrozenTurn]
    occasion: Occasion


@dataclass(frozen=True)
class _Seen:
    """A turn, and the records of the target."""

    played: PacedTurn
    records: Sequence[Record]


def measure(plan: Plan, folder: Path, program: Path, rivals: Sequence[str]) -> Results:
    """One turn of each.

    Args:
        plan: how long.
        folder: for files.
        program: the arrival server.
        rivals: those that are there.
    """
    freeze, occasion = plan.freeze, fetch_occasion()
    truth = _expect(freeze)
    turns = []
    for name in (*_KINDS, *rivals):
        seen = _play(name, freeze, folder, program)
        turn = FrozenTurn(
            contestant=name,
            arrived=len(seen.records),
            reported=seen.played.reported,
            response_time=seen.played.response_time,
            lateness=seen.played.lateness,
        )
        turns.append(turn)
        log(f"  freeze, {name}: {turn.arrived:,} requests, p99 {turn.reported.p99_ms} ms")
        if name == OKU_SEND:
            course = seen.records
    bars = [bar for turn in turns for bar in _build_bars(turn)]
    draw_freeze(open_kept(folder) / PICTURE, freeze, course, bars, truth)
    return Results(
        freeze=freeze,
        truth=truth,
        turns=turns,
        occasion=occasion,
    )


def _expect(freeze: Freeze) -> Distribution:
    """What the planned requests would have waited for, if each had been sent when it was due."""
    waits = expect_waits_ms(freeze, DELAY_MS)
    return Distribution(
        p50_ms=round(waits[find_rank(0.5, len(waits)) - 1], 3),
        p99_ms=round(waits[find_rank(0.99, len(waits)) - 1], 3),
        max_ms=round(waits[-1], 3),
    )


def _play(name: str, freeze: Freeze, folder: Path, program: Path) -> _Seen:
    manner = Manner(
        requests=2 * freeze.rate * freeze.run_s,
        delay_ms=DELAY_MS,
        freeze_at_s=freeze.at_s,
        freeze_s=freeze.for_s,
    )
    with open_records_folder(folder) as place, ArrivalTarget(program, place, manner) as target:
        stage = Stage(target, folder)
        if name in _KINDS:
            load = Load(
                engine=HTTPTOOLS,
                concurrency=_KINDS[name].concurrency,
                rate=f"{freeze.rate}/s",
                duration=f"{freeze.run_s}s",
                late=_KINDS[name].late,
            )
            played = play_paced_oku(stage, load)
        else:
            url = target.url.format(i=1)
            pace = Pace(url=url, rate=freeze.rate, seconds=freeze.run_s, connections=CONNECTIONS)
            played = play_paced_rival(stage, PACED_RIVALS[name], pace)
        return _Seen(played, target.read_records())


def _build_bars(turn: FrozenTurn) -> Iterator[Bar]:
    """The bar of a tool; for Oku two, its response time beside its latency."""
    left_out = turn.reported.left_out or 0
    name = turn.contestant.replace("`", "")
    if turn.response_time is None:
        yield Bar(name, turn.reported.p99_ms, left_out)
        return
    yield Bar(f"{name}: response time", turn.response_time.p99_ms, left_out, is_response_time=True)
    yield Bar(f"{name}: latency", turn.reported.p99_ms, is_latency=True)
