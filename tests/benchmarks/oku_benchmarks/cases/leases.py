"""Leases under what makes loads stutter: each case plays real processes against a target that counts.

Each is a goal that is met or not. With a baseline, another checkout takes its turn before this one, case by
case.
"""

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from oku_benchmarks.cases.lease_cases.command_cases import COMMAND_CASES
from oku_benchmarks.cases.lease_cases.deaths import DEATHS
from oku_benchmarks.cases.lease_cases.full_window import FULL_WINDOW
from oku_benchmarks.cases.lease_cases.lease_case import Finding, LeaseCase
from oku_benchmarks.cases.lease_cases.lease_sizes import LEASE_SIZES
from oku_benchmarks.cases.lease_cases.many_workers import MANY_WORKERS
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.machine import fetch_commit
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.checkout import Checkout

LEASE_CASES: Mapping[str, LeaseCase] = {
    **FULL_WINDOW,
    **LEASE_SIZES,
    **DEATHS,
    **COMMAND_CASES,
    **MANY_WORKERS,
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one case, when it was last played."""

    case: str
    text: str
    goal: str
    baseline: Finding | None
    """Of the checkout that it was compared with."""
    finding: Finding
    measured_at: str
    commit: str


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All cases that were ever played, in their order."""

    rows: list[Row]


def measure(plan: Plan, folder: Path) -> Results:
    """Play the cases that were asked for."""
    chosen = plan.lease_cases or tuple(name for name, case in LEASE_CASES.items() if not case.is_long)
    baseline = Checkout(Path(plan.baseline)) if plan.baseline else None
    return Results(rows=[_measure_case(name, baseline, folder) for name in chosen])


def merge(before: Results, results: Results) -> Results:
    """The newest row of each case; cases that are gone go with their rows."""
    newest = {row.case: row for row in (*before.rows, *results.rows)}
    return Results(rows=[newest[name] for name in LEASE_CASES if name in newest])


def _measure_case(name: str, baseline: Checkout | None, folder: Path) -> Row:
    case = LEASE_CASES[name]
    log(f"  {name}: {case.text}\n    goal: {case.goal}")
    before = None
    if baseline and not case.is_simulated:
        before = _play(case, baseline, folder / f"{name}-baseline", "baseline")
    return Row(
        case=name,
        text=case.text,
        goal=case.goal,
        baseline=before,
        finding=_play(case, Checkout(), folder / name, "now"),
        measured_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=fetch_commit(),
    )


def _play(case: LeaseCase, checkout: Checkout, folder: Path, who: str) -> Finding:
    folder.mkdir()
    try:
        finding = case.measure(checkout, folder)
        shutil.rmtree(folder, ignore_errors=True)
    except BenchmarkError as error:
        kept = folder.parent.with_name(f"failed-{folder.name}")
        shutil.rmtree(kept, ignore_errors=True)
        folder.rename(kept)
        log(f"    its logs are in {kept}")
        finding = Finding(text=f"failed: {error}", is_met=False)
    log(f"    {who}: {finding.text}: {'met' if finding.is_met else 'MISSED'}")
    return finding
