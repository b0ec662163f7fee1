from collections.abc import Callable

from oku_cli.views.workers_view import MOST_LOST, MOST_WORKERS, build_workers
from oku_core.results.summary import WorkerSummary

Render = Callable[..., list[str]]


def make_workers(count: int, lost: int = 0) -> list[WorkerSummary]:
    """Make this many workers, of which the first are lost."""
    return [
        WorkerSummary(
            name=f"worker-{i}", requests=1000 * i, cpu_s=10.0 * i, peak_rss_mb=60.0 + i, lost=i <= lost
        )
        for i in range(1, count + 1)
    ]


def test_each_of_a_few_workers_has_a_row(render: Render) -> None:
    """The row has requests, processor time and memory, and says if the worker was lost."""
    assert [line.split() for line in render(build_workers(make_workers(2, lost=1)))] == [
        ["2", "in", "all", "requests", "cpu", "memory"],
        ["worker-1", "1,000", "10.0", "s", "61", "MB", "lost"],
        ["worker-2", "2,000", "20.0", "s", "62", "MB"],
    ]


def test_of_many_workers_the_spread_is_shown(render: Render) -> None:
    """The rows are minimum, median and maximum of each column by itself."""
    assert [line.split() for line in render(build_workers(make_workers(MOST_WORKERS + 1)))] == [
        ["9", "in", "all", "requests", "cpu", "memory"],
        ["min", "1,000", "10.0", "s", "61", "MB"],
        ["median", "5,000", "50.0", "s", "65", "MB"],
        ["max", "9,000", "90.0", "s", "69", "MB"],
    ]


def test_the_table_stays_short_however_many_are_lost(render: Render) -> None:
    """The first lost ones have a row, the others are counted."""
    lines = render(build_workers(make_workers(1000, lost=500)))
    assert sum(line.split()[-1] == "lost" for line in lines[:-1]) == MOST_LOST
    assert lines[-1].split() == f"and {500 - MOST_LOST} more lost".split()


def test_long_names_are_folded_and_not_cut(render: Render) -> None:
    """The end of a pod's name is what tells it apart, and the numbers keep their places."""
    name = "oku-worker-with-a-very-long-release-name-7d9f8b6c5-x2x4z"
    worker = WorkerSummary(name=name, requests=100_000_000, cpu_s=12_345.6, peak_rss_mb=1234.0, lost=True)
    lines = render(build_workers([worker]), 66)
    assert "".join(line.split()[0] for line in lines[1:]) == name
    assert lines[1].split()[1:] == ["100,000,000", "12,345.6", "s", "1,234", "MB", "lost"]
