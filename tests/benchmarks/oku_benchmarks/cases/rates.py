"""Keeping a rate: a contest at each, and a target that freezes; each part may be measured by itself."""

from pathlib import Path

import msgspec

from oku_benchmarks.cases import freeze
from oku_benchmarks.cases.contest import Contest, Course, hold_contest
from oku_benchmarks.plan import FREEZE, RATE_PARTS, Plan
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.arrival_target import build_server
from oku_benchmarks.stacks.stamp_check import Stamping, check_stamps
from oku_benchmarks.turns.paced_rivals import PACED_RIVALS
from oku_benchmarks.turns.paced_turn import CONNECTIONS


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The newest of each part; a part that was never measured is not there.

    Attributes:
        connections: that everybody gets.
        stamping: how fine the target judges.
        contests: one for each rate.
        freeze: what the tools reported of the target that froze.
        missing: contestants that are not there, and why.
    """

    connections: int
    stamping: Stamping
    contests: list[Contest]
    freeze: freeze.Results | None
    missing: dict[str, str]


def measure(plan: Plan, folder: Path) -> Results:
    """Let all contestants take their turns at each rate that is asked for, then freeze the target."""
    missing = {name: rival.describe_missing() for name, rival in PACED_RIVALS.items() if rival.find() is None}
    for reason in sorted(set(missing.values())):
        log(f"  left out: {reason}")
    program = build_server(folder)
    stamping = check_stamps(program, folder)
    parts = plan.rate_parts or tuple(RATE_PARTS)
    there = {name: rival for name, rival in PACED_RIVALS.items() if name not in missing}
    rivals = [name for name, rival in there.items() if not rival.is_variant]
    return Results(
        connections=CONNECTIONS,
        stamping=stamping,
        contests=[
            hold_contest(
                Course(program=program, folder=folder, rate=rate, seconds=seconds), plan.rate_rounds, rivals
            )
            for rate, seconds in plan.rates
            if any(RATE_PARTS[part] == rate for part in parts)
        ],
        freeze=freeze.measure(plan, folder, program, list(there)) if FREEZE in parts else None,
        missing=missing,
    )


def merge(before: Results, results: Results) -> Results:
    """The newest of each part."""
    newest = {contest.rate: contest for contest in (*before.contests, *results.contests)}
    return msgspec.structs.replace(
        results,
        contests=[newest[rate] for rate in sorted(newest)],
        freeze=results.freeze or before.freeze,
    )
