import asyncio
import signal
from collections.abc import AsyncGenerator, Callable

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.kit.runs.summaries import build_summary

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import CoordinatorRef, Endpoint, UnreachableError
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower, find_exit_code, run_async, try_add_intervals
from oku_cli.follow.watch import Watch
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Engine
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.request_summary import OutcomeCounts
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag, Validity
from oku_core.thresholds.threshold_summary import ThresholdVerdict

ORDERED = {"run": "r", "state": "pausing", "engine": "httptools", "error": "not now"}
SUMMARY = build_summary(
    run="r", name="", state=RunState.COMPLETED, engine=Engine.AIOHTTP,
    requests=1, accounted=1, resent_at_most=0,
    outcomes=OutcomeCounts(
        ok=1, unexpected_status=0, timeout=0, connect_error=0, disconnected=0, protocol_error=0
    ),
    statuses={"200": 1}, bytes_received=1, started_at=None, ended_at=None, active_s=1.0, throughput_rps=1.0,
    latency_ms=LatencySummary(), workers=[], servers=None, validity=[],
)  # fmt: skip


async def send_no_ticks(request: web.Request) -> web.StreamResponse:
    """Answer a follower, and never send anything."""
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.Event().wait()
    return response


def test_the_exit_code_says_how_the_run_ended() -> None:
    """A wrong account comes first, then a pause, then the verdict of the thresholds, then the state."""
    flag = Validity(flag=Flag.UNBALANCED, detail="", requests=1)
    passed, failed, undecided = ThresholdVerdict.PASSED, ThresholdVerdict.FAILED, ThresholdVerdict.UNDECIDED
    paused, cancelled = RunState.PAUSED, RunState.CANCELLED
    wrong = []
    for state, verdict, allows_undecided, code in (
        (RunState.COMPLETED, None, False, ExitCode.COMPLETED),
        (RunState.COMPLETED, passed, False, ExitCode.COMPLETED),
        (RunState.COMPLETED, failed, False, ExitCode.NOT_PASSED),
        (RunState.COMPLETED, failed, True, ExitCode.NOT_PASSED),
        (RunState.COMPLETED, undecided, False, ExitCode.NOT_PASSED),
        (RunState.COMPLETED, undecided, True, ExitCode.COMPLETED),
        (cancelled, None, False, ExitCode.CUT_SHORT),
        (cancelled, passed, False, ExitCode.CUT_SHORT),
        (cancelled, failed, False, ExitCode.NOT_PASSED),
        (cancelled, undecided, False, ExitCode.NOT_PASSED),
        (cancelled, undecided, True, ExitCode.CUT_SHORT),
        (RunState.FAILED, None, False, ExitCode.CUT_SHORT),
        *((paused, verdict, allows, ExitCode.CUT_SHORT)
          for verdict in (None, *ThresholdVerdict) for allows in (False, True)),
    ):  # fmt: skip
        summary = msgspec.structs.replace(SUMMARY, state=state, verdict=verdict)
        unbalanced = msgspec.structs.replace(summary, validity=[flag])
        codes = [find_exit_code(each, allows_undecided=allows_undecided) for each in (summary, unbalanced)]
        if codes != [code, ExitCode.UNBALANCED]:
            wrong.append((state, verdict, allows_undecided, codes))
    assert wrong == []


@pytest.mark.parametrize(
    "error", [UnreachableError("no answer"), InterruptedAtOnceError("stopped at once")], ids=repr
)
def test_what_cuts_a_command_short_is_one_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 3."""

    async def fail() -> ExitCode:
        await asyncio.sleep(0)
        raise error

    assert run_async(fail()) == ExitCode.CUT_SHORT
    assert capsys.readouterr().err == f"oku: {error}\n"


NEVER = 0
"""The status of an answer that does not come."""


@pytest.mark.parametrize(
    ("status", "is_here", "end"),
    [
        (202, False, "run r is being paused and comes to rest by itself; look at it with: "),
        (409, False, "run r was not paused by this command; look at it with: "),
        (503, False, "run r goes on: its coordinator could not be told to pause it; pause it with: "),
        (NEVER, False, "run r goes on: its coordinator could not be told to pause it; pause it with: "),
        (202, True, "stopped at once"),
    ],
)
async def test_the_second_interrupt_says_what_becomes_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    end: str,
    *,
    is_here: bool,
) -> None:
    """A remote run depends on the coordinator's answer to the first; a local run ends with the command."""
    monkeypatch.setattr("oku_cli.follow.follower.ORDER_PATIENCE_S", 0.0)
    monkeypatch.setattr("oku_cli.follow.follower.ORDER_TRY_S", 10.0 if status else 0.1)

    async def pause(_: web.Request) -> web.Response:
        if status == NEVER:
            await asyncio.Event().wait()
        return web.json_response(ORDERED, status=status)

    app = web.Application()
    app.add_routes([web.get("/api/runs/r/ticks", send_no_ticks), web.post("/api/runs/r/pause", pause)])
    async with TestServer(app) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with TellingClient(Endpoint(url, "t")) as client:
            hints = InterruptHints(["--x"], outlives=not is_here)
            follower = Follower(client, Watch(), hints, Interrupts())
            following = asyncio.create_task(follower.follow("r", "title"))
            await asyncio.sleep(0)
            signal.raise_signal(signal.SIGINT)
            await client.has_told.wait()
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(InterruptedAtOnceError, match=f"^{end}"):
                await following
    why = {503: "not now", NEVER: "no answer within 0.1 s"}.get(status)
    lines = [line for line in capsys.readouterr().out.splitlines() if "could not be told" in line]
    assert [line[9:] for line in lines] == [f"run r could not be told to pause: {why}; trying again"] * bool(
        why
    )


@pytest.mark.parametrize(
    ("pause_status", "is_here", "end"),
    [
        (202, True, "stopped at once (the ledger cannot be used)"),
        (503, True, "stopped at once (the ledger cannot be used)"),
        (503, False, "run r goes on: its coordinator could not be told to pause it; pause it with: "),
        (202, False, "run r is being paused and comes to rest by itself; look at it with: "),
    ],
)
async def test_one_interrupt_is_enough_where_the_run_cannot_come_to_rest(
    monkeypatch: pytest.MonkeyPatch,
    pause_status: int,
    end: str,
    *,
    is_here: bool,
) -> None:
    """Its coordinator is not ready, and stays so; one that is ready again in between is waited for."""
    monkeypatch.setattr("oku_cli.follow.follower.STANDSTILL_S", 0.1)
    monkeypatch.setattr("oku_cli.follow.follower.READINESS_POLL_S", 0.01)
    statuses = iter([503, 200, 503, 200])
    asked: list[float] = []

    async def pause(_: web.Request) -> web.Response:
        return web.json_response(ORDERED, status=pause_status)

    async def probe(_: web.Request) -> web.Response:
        asked.append(asyncio.get_running_loop().time())
        return web.Response(status=next(statuses, 503), text="the ledger cannot be used\n")

    app = web.Application()
    app.add_routes([web.get("/api/runs/r/ticks", send_no_ticks), web.post("/api/runs/r/pause", pause)])
    app.add_routes([web.get("/readyz", probe)])
    async with TestServer(app) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with TellingClient(Endpoint(url, "t")) as client:
            hints = InterruptHints(["--x"], outlives=not is_here)
            following = asyncio.create_task(
                Follower(client, Watch(), hints, Interrupts()).follow("r", "title")
            )
            await asyncio.sleep(0)
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(InterruptedAtOnceError) as ended:
                await following
    assert str(ended.value).startswith(end)
    assert str(ended.value).endswith(" (the ledger cannot be used)")
    assert asyncio.get_running_loop().time() - asked[3] >= 0.1


class TellingClient(Client):
    """A client that says when the coordinator has answered its order."""

    def __init__(self, coordinator: CoordinatorRef) -> None:
        super().__init__(coordinator)
        self.has_told = asyncio.Event()

    async def pause(self, run: str) -> RunState:
        """Pause the run, and note when the coordinator has answered."""
        try:
            return await super().pause(run)
        finally:
            self.has_told.set()

    async def cancel(self, run: str, *, at_once: bool = False) -> RunState:
        """Cancel the run, and note when the coordinator has answered."""
        try:
            return await super().cancel(run, at_once=at_once)
        finally:
            self.has_told.set()


def serve_orders(orders: list[str], status: int = 202) -> web.Application:
    """A coordinator whose run goes on, and that notes which orders it gets."""

    async def take(request: web.Request) -> web.Response:
        orders.append(request.path)
        return web.json_response(ORDERED, status=status)

    async def be_ready(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/api/runs/r/ticks", send_no_ticks), web.post("/api/runs/r/{order}", take)])
    app.add_routes([web.get("/readyz", be_ready)])
    return app


@pytest.mark.parametrize("status", [202, 503])
async def test_a_command_that_detaches_ends_at_once(status: int) -> None:
    """It gives no order and asks for nothing, so it does not matter whether the coordinator answers."""
    orders: list[str] = []
    async with TestServer(serve_orders(orders, status)) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with Client(Endpoint(url, "t")) as client:
            hints = InterruptHints(["--x"], outlives=True)
            follower = Follower(client, Watch(), hints, Interrupts(SignalAction.DETACH))
            following = asyncio.create_task(follower.follow("r", "title"))
            await asyncio.sleep(0)
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(InterruptedAtOnceError, match=r"^run r goes on; wait for it with: ") as ended:
                await asyncio.wait_for(following, 5)
    assert ended.value.action is SignalAction.DETACH
    assert orders == []


@pytest.mark.parametrize(
    ("status", "is_here", "end"),
    [
        (202, False, "run r is being cancelled and comes to rest by itself; look at it with: "),
        (409, False, "run r was not cancelled by this command; look at it with: "),
        (503, False, "run r goes on: its coordinator could not be told to cancel it; cancel it with: "),
        (202, True, "stopped at once"),
    ],
)
async def test_sigterm_cancels_where_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch, status: int, end: str, *, is_here: bool
) -> None:
    """A second one leaves the run, and says what becomes of it."""
    monkeypatch.setattr("oku_cli.follow.follower.ORDER_PATIENCE_S", 0.0)
    orders: list[str] = []
    async with TestServer(serve_orders(orders, status)) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with TellingClient(Endpoint(url, "t")) as client:
            hints = InterruptHints(["--x"], outlives=not is_here)
            follower = Follower(client, Watch(), hints, Interrupts(SignalAction.CANCEL))
            following = asyncio.create_task(follower.follow("r", "title"))
            await asyncio.sleep(0)
            signal.raise_signal(signal.SIGTERM)
            await client.has_told.wait()
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(InterruptedAtOnceError, match=f"^{end}") as ended:
                await asyncio.wait_for(following, 5)
    assert ended.value.action is SignalAction.CANCEL
    assert set(orders) == {"/api/runs/r/cancel"}


async def test_a_coordinator_that_is_gone_is_not_asked_again() -> None:
    """That of a local stack ends with it; until then a silence is an outage, which is waited for."""
    asked: list[bool] = []

    class Stack:
        def has_ended(self) -> bool:
            asked.append(len(asked) == 2)
            return asked[-1]

    async with Client(Endpoint("http://127.0.0.1:1", "t")) as client:
        follower = Follower(client, Watch(quiet=True), InterruptHints(), Interrupts(), lifetime=Stack())
        with pytest.raises(UnreachableError):
            await asyncio.wait_for(follower.follow("r", "title"), 10)
    assert asked == [False, False, True]


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
