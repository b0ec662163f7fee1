"""Runs that end at a time: what a pause or a death takes from them is not made up for, nor lost."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import LocalRun, Start, run_oku

from oku_core.spec.spec import HTTP1_ENGINES

pytestmark = pytest.mark.alone

SECONDS = 8
FLAGS = (
    "--duration", f"{SECONDS}s", "--concurrency", "5", "--workers", "2", "--servers", "1", "--delay", "50ms",
    "--quiet",
)  # fmt: skip
FASTEST = 2 * 5 / 0.05
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


@pytest.mark.parametrize("requests", [(), ("--requests", "1M")], ids=["time", "time or requests"])
@pytest.mark.parametrize("stop", [stop_by_pause, stop_by_death])
def test_a_run_that_goes_on_has_the_rest_of_its_time(
    start: Start, stop: Callable[[LocalRun], None], requests: tuple[str, ...]
) -> None:
    """What was taken before counts; what nobody has taken at the end is no request of the run."""
    before = {}
    for engine in HTTP1_ENGINES:
        run = start("run", *FLAGS, *requests, "--engine", engine, data_dir=engine)
        run.wait_for_accounted(500)
        stop(run)
        before[engine] = stopped = run.fetch_summary(run.run_id())
        assert stopped["state"] == "paused"
        assert stopped["outcomes"]["ok"] == stopped["accounted"] > 0
        assert 0 < stopped["active_s"] < SECONDS - 1

    runs = {
        engine: start("resume", before[engine]["run"], "--quiet", data_dir=engine) for engine in HTTP1_ENGINES
    }
    for engine, resumed in runs.items():
        summary = resumed.finish()
        check_time(summary)
        assert summary["accounted"] > before[engine]["accounted"]
        assert (summary["resent_at_most"] > 0) == (stop is stop_by_death)
        lengths = resumed.lengths()
        assert (lengths.pending, lengths.leased) == (0, 0)
        assert lengths.unused > 0


def test_a_run_with_few_requests_ends_before_its_time(start: Start) -> None:
    """Whichever comes first ends it, and nothing is left unused."""
    summary = start("run", *FLAGS, "--requests", "100").finish()
    assert_completed(summary)
    assert (summary["requests"], summary["outcomes"]["ok"]) == (100, 100)
    assert summary["active_s"] < SECONDS - 1
