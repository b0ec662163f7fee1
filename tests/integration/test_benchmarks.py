"""The small form of a benchmark of each question: it fails when a goal is missed that no machine may miss."""

from pathlib import Path

import pytest

from oku_benchmarks.questions import BENCHMARKS
from oku_benchmarks.report import Plan, Report


def measure(name: str, folder: Path, *only: str) -> Report:
    """The report of a benchmark, in which nothing was missed."""
    report = BENCHMARKS[name].measure(Plan(folder=folder, is_small=True, rounds=1, only=only))
    assert [(goal.text, goal.result) for goal in report.misses] == []
    assert any(goal.is_exact for goal in (*report.goals, *report.judged))
    return report


def test_oku_and_a_bare_loop_take_turns(tmp_path: Path) -> None:
    """Peers: Oku sends each request once; the ratio of both rates is in the table."""
    [table] = measure("rate", tmp_path).tables
    assert {"oku", "bare loop"} <= {row[0] for row in table.rows}


def test_each_engine_and_a_scenario_send_each_request_once(tmp_path: Path) -> None:
    """Engines: what a request costs is processor time of the worker, which its parent does not use."""
    report = measure("cost", tmp_path)
    costs = {row[0]: float(row[3]) for row in report.tables[0].rows}
    assert all(costs[name] > 1 for name in ("httptools", "aiohttp", "scenario"))


def test_a_run_survives_a_worker(tmp_path: Path) -> None:
    """Leases: everything is accounted once, and what was sent twice is at most what the run admits."""
    measure("cases", tmp_path, "kills")


def test_a_ledger_of_ten_million_requests_is_small(tmp_path: Path) -> None:
    """Ledger: it survives the coordinator, too."""
    measure("requests", tmp_path)


@pytest.mark.alone
def test_a_run_of_many_parts_takes_little_memory_and_blocks_nobody(tmp_path: Path) -> None:
    """Ledger: 30 targets in 12 stages have 360 parts, each with three distributions."""
    measure("parts", tmp_path)


def test_a_long_run_takes_little_memory_and_its_servers_count_what_it_sends(tmp_path: Path) -> None:
    """Memory: processor time and memory are those of the worker, and not of its parent."""
    _, processes = measure("run", tmp_path).tables
    rows = {row[0]: row for row in processes.rows}
    assert float(rows["worker-1"][3]) > 0.05
    assert float(rows["worker-1"][1].split()[0]) > float(rows["oku"][1].split()[0])


def test_what_users_type_makes_each_request_once(tmp_path: Path) -> None:
    """Start: with a stack of its own, with a scenario, at a coordinator; help makes none."""
    measure("commands", tmp_path)
