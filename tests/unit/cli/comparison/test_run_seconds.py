from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec
import pytest

from oku_cli.comparison.run_seconds import RunSeconds, add_intervals, read_run_seconds
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError


def test_the_summary_of_a_run_gets_intervals(make_run: Callable[..., RunSeconds]) -> None:
    """Each is around the quantile of the account; a run that is short or goes on has none."""
    summary = make_run().build_intervals()
    assert summary.latency_interval_ms is not None
    for name in ("p50", "p90", "p95", "p99"):
        low, high = getattr(summary.latency_interval_ms, name)
        assert low < getattr(summary.latency_ms, name) < high
    assert summary.latency_interval_ms.p99_9 is None
    assert summary.response_time_interval_ms is None
    for run in (make_run(seconds=20), make_run(state=RunState.RUNNING)):
        assert run.build_intervals() == run.summary


class Lines:
    """The lines of a history."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.lines = lines
        self.taken = 0

    async def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """Yield them, and count those that are taken."""
        assert run == "r0"
        for line in self.lines:
            self.taken += 1
            yield line


def write(run: RunSeconds) -> list[bytes]:
    """Write the lines of a history, with leases that nobody needs."""
    head = msgspec.json.encode({"at": 1.0, "summary": run.summary, "spec": run.spec})[:-1]
    samples = [(b"," if place else b"") + msgspec.json.encode(each) for place, each in enumerate(run.samples)]
    return [head, b',"samples":[', *samples, b"]", b',"leases":[', *[b"{}"] * 1000, b"]", b"}"]


async def test_only_the_seconds_are_read(make_run: Callable[..., RunSeconds]) -> None:
    """The lines that follow them are not read, and of a run that is too short no line is."""
    run = make_run()
    lines = Lines(write(run))
    assert await read_run_seconds(lines, "r0") == run
    assert lines.taken == 63
    assert (await add_intervals(Lines(write(run)), run.summary)).latency_interval_ms is not None
    short = msgspec.structs.replace(run.summary, active_s=12.0)
    assert await add_intervals(Lines([]), short) == short


@pytest.mark.parametrize("lines", [[], [b"no JSON"], [b"{}", b"["]])
async def test_a_history_that_cannot_be_read_is_said(lines: list[bytes]) -> None:
    """In one line."""
    with pytest.raises(UserError, match="run r0: its history cannot be read"):
        await read_run_seconds(Lines(lines), "r0")
