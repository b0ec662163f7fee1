"""The disk under the ledger is full for a while."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import LocalRun, Start

from oku_core.spec.spec import Engine


@contextmanager
def filling_disk(run: LocalRun) -> Iterator[None]:
    """The coordinator can make no file larger meanwhile, its ledger and its log included."""
    pid = run.pid("coordinator")
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


@pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])
def test_a_run_ends_after_a_disk_that_was_full_at_its_end(start_load: Start) -> None:
    """Its last checkpoints wait, the coordinator is not restarted, and the account balances."""
    run = start_load(8000)
    run.wait_for_leases()
    with filling_disk(run):
        before = run.lengths()
        time.sleep(20.0)
        assert run.process.poll() is None
        assert run.lengths() == before

    summary = run.finish(60)

    assert run.process.returncode == 0
    assert_completed(summary)
    assert "died" not in run.output
