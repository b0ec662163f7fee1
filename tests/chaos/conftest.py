from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kit.local_run import LocalRun

LOAD = ("--concurrency", "50", "--delay", "5ms..50ms", "--workers", "2")
"""About 3,600 requests a second over two workers, which leaves the processors idle enough for faults."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LocalRun]]:
    """Starts `oku` with arguments; what is left of it is ended after the test."""
    started: list[LocalRun] = []

    def start_run(*arguments: str, data_dir: str = "data") -> LocalRun:
        run = LocalRun(tmp_path / data_dir, *arguments)
        started.append(run)
        return run

    yield start_run
    for run in started:
        run.close()


@pytest.fixture
def start_load(start: Callable[..., LocalRun]) -> Callable[..., LocalRun]:
    """Starts a run of so many requests at a steady rate against delay servers of its own."""
    return lambda requests, *flags: start("run", "--requests", str(requests), *LOAD, *flags)
