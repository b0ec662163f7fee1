"""A turn at a constant rate, of Oku or of another load generator, and what it reports of it."""

from dataclasses import dataclass
from typing import Any

import msgspec

from oku_benchmarks.turns.oku_turn import Load, open_data_dir, play_oku
from oku_benchmarks.turns.paced_rivals import Pace, PacedRival
from oku_benchmarks.turns.rival_reports import Reported
from oku_benchmarks.turns.turn import Stage, Turn

CONNECTIONS = 100
"""How many each contestant may have."""
_RIVAL = "rival"


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Three figures of a distribution, in milliseconds; None when it is empty."""

    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True, kw_only=True)
class PacedTurn:
    """What came of it.

    Args:
        turn: as seen from outside.
        reported: what the tool says of the latencies.
        response_time: what Oku says of the time from due to answered; None for others.
        lateness: what Oku says of the time from due to sent; None for others.
    """

    turn: Turn
    reported: Reported
    response_time: Distribution | None = None
    lateness: Distribution | None = None


def play_paced_rival(stage: Stage, rival: PacedRival, pace: Pace) -> PacedTurn:
    """Let another load generator take its turn."""
    program = rival.find()
    assert program is not None
    report, output = stage.folder / "report", stage.folder / f"{_RIVAL}.log"
    report.unlink(missing_ok=True)
    output.unlink(missing_ok=True)
    turn = stage.play(_RIVAL, lambda _: list(rival.build(program, pace, report)))
    return PacedTurn(turn=turn, reported=rival.read_report(report, output))


def play_paced_oku(stage: Stage, load: Load) -> PacedTurn:
    """Let Oku take its turn, without its live view, as the others."""
    with open_data_dir(stage.folder) as data_dir:
        turn = play_oku(stage, data_dir, load).turn
    summary = turn.account
    latency = _read_distribution(summary["latency_ms"])
    outcomes: dict[str, int] = summary["outcomes"]
    left_out = outcomes["not_sent"]
    return PacedTurn(
        turn=turn,
        reported=Reported(
            requests=sum(outcomes.values()) - left_out - outcomes["lost"],
            p50_ms=latency.p50_ms,
            p99_ms=latency.p99_ms,
            max_ms=latency.max_ms,
            left_out=left_out,
        ),
        response_time=_read_distribution(summary["response_time_ms"]),
        lateness=_read_distribution(summary["lateness_ms"]),
    )


def _read_distribution(figures: dict[str, Any]) -> Distribution:
    return Distribution(p50_ms=figures["p50"], p99_ms=figures["p99"], max_ms=figures["max"])
