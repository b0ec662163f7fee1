from collections.abc import AsyncGenerator, Callable

import pytest

from oku_cli.remote.endpoint import UnreachableError
from oku_cli.remote.remote_run import RunStart, refuse_shape, try_add_intervals
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.results.summary import Summary
from oku_core.spec.parser import Source, parse_spec


def test_a_run_is_titled_with_its_target_and_its_load() -> None:
    """Its name stands before it, or its id; what a coordinator alone knows is left out."""
    spec = parse_spec(Source(None, {"rate": "5/s", "duration": "10s", "name": "soak"}))
    assert RunStart.submit(spec).build_title("6f2c1a") == ("soak · delay servers · 5/s for 10 s, 50 requests")
    nameless = parse_spec(Source(None, {"url": "http://h:1/{i}", "requests": 5, "concurrency": 2}))
    assert RunStart.resume("6f2c1a", nameless).build_title("6f2c1a") == (
        "6f2c1a · http://h:1/{i} · 2 in flight per worker, 5 requests"
    )
    unknown = RunStart(begin=RunStart.submit(spec).begin, resumed="6f2c1a")
    assert unknown.build_title("6f2c1a") == "6f2c1a"


def test_flags_that_shape_a_local_stack_are_refused_at_a_remote_coordinator() -> None:
    """They are not ignored silently."""
    with pytest.raises(UserError, match="--servers: shapes a local stack; it cannot be combined with --co"):
        refuse_shape(servers=2)
    with pytest.raises(UserError, match="--workers: shapes a local stack"):
        refuse_shape(workers=2, servers=None)
    refuse_shape(workers=None, servers=None)


class Gone:
    """A coordinator that does not answer any more."""

    async def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """Yield nothing."""
        raise UnreachableError(f"no answer about {run}")
        yield b""


async def test_a_run_that_has_ended_keeps_its_summary_without_intervals(
    make_summary: Callable[..., Summary], capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is that of the run, although its coordinator has gone meanwhile."""
    summary = make_summary(state=RunState.COMPLETED, active_s=60.0)
    assert await try_add_intervals(Gone(), summary) == summary
    assert capsys.readouterr().err == f"the summary has no intervals: no answer about {summary.run}\n"
