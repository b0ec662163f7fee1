"""Runs that end at a time: what a pause or a death takes from them is not made up for, nor lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import LocalRun, Start, run_oku

from oku_core.spec.spec import Engine

pytestmark = pytest.mark.alone

SECONDS = 10
FLAGS = (
    "--duration", f"{SECONDS}s", "--concurrency", "10", "--workers", "2", "--servers", "1", "--delay", "50ms",
    "--quiet",
)  # fmt: skip
FASTEST = 10 / 0.05
"""As many requests a second can end at most."""


def check_time(summary: dict[str, Any]) -> None:
    """The time was used, once, and all that was taken in it is accounted: that is what the run has."""
    assert_completed(summary)
    assert summary["outcomes"]["ok"] == summary["accounted"] == summary["requests"]
    assert SECONDS - 1 < summary["active_s"] < SECONDS + 1
    assert SECONDS * FASTEST / 4 < summary["requests"] <= SECONDS * FASTEST * 1.1


def stop_by_pause(run: LocalRun) -> None:
    """Pause it from another terminal."""
    paused = run_oku("pause", run.run_id(), "--data-dir", str(run.data_dir), cwd=run.data_dir)
    assert paused.returncode == 0, paused.stderr
    run.process.wait(30)


def stop_by_death(run: LocalRun) -> None:
    """Kill it with everything that belongs to it."""
    run.process.kill()
    run.close()


@pytest.mark.parametrize("stop", [stop_by_pause, stop_by_death])
def test_a_run_that_goes_on_has_the_rest_of_its_time(start: Start, stop: Callable[[LocalRun], None]) -> None:
    """What was taken before counts; what nobody has taken at the end is no request of the run.

    Runs of both engines go beside each other. One has a number of requests, too, which it never reaches.
    """

    def play(engine: Engine, *more: str) -> None:
        run = start("run", *FLAGS, *more, "--engine", engine, data_dir=engine)
        run.wait_for_accounted(300)
        stop(run)
        before = run.fetch_summary(run.run_id())
        assert before["state"] == "paused"
        assert before["outcomes"]["ok"] == before["accounted"] > 0
        assert 0 < before["active_s"] < SECONDS - 1

        resumed = start("resume", before["run"], "--quiet", data_dir=engine)
        summary = resumed.finish()
        check_time(summary)
        assert summary["accounted"] > before["accounted"]
        assert (summary["resent_at_most"] > 0) == (stop is stop_by_death)
        lengths = resumed.lengths()
        assert (lengths.pending, lengths.leased) == (0, 0)
        assert lengths.unused > 0

    with ThreadPoolExecutor() as pool:
        played = [pool.submit(play, Engine.HTTPTOOLS), pool.submit(play, Engine.AIOHTTP, "--requests", "1M")]
    for each in played:
        each.result()
