import logging
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web
from tests.kit.coordinators.refusal_metrics import RefusalMetrics

from oku_coordinator.api.authentication import EVERY_S, LOG_THROTTLE, MOST_KINDS, LogThrottle, RefusedCallers
from oku_core.messaging.credentials import Credential, CredentialFault


class World:
    """A port whose callers are refused."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.metrics = RefusalMetrics()
        self.api = web.Application()
        self.refused = RefusedCallers(self.api, Credential.TOKEN, self.metrics, lambda: self.now_s)

    def refuse(
        self,
        peer: str | None = "10.0.0.1",
        refusal: CredentialFault = CredentialFault.WRONG,
        method: str = "GET",
        route: str | None = "/api/runs/{run}",
        path: str = "/api/runs/x",
    ) -> None:
        """Refuse a call."""
        resource = SimpleNamespace(canonical=route) if route else None
        match_info = SimpleNamespace(route=SimpleNamespace(resource=resource))
        request = SimpleNamespace(method=method, remote=peer, match_info=match_info, path=path)
        self.refused.record(cast("web.Request", request), refusal)

    def pass_minute(self) -> None:
        """Let a minute go by, as the server of the port says it."""
        self.now_s += EVERY_S
        self.api[LOG_THROTTLE].flush()


@pytest.fixture
def world() -> World:
    """Nobody was refused yet."""
    return World()


def test_each_refusal_is_counted_and_a_flood_is_two_lines(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The second comes after a minute and has their number."""
    for _ in range(10_000):
        world.refuse()
    assert world.metrics.refusals == [(Credential.TOKEN, CredentialFault.WRONG)] * 10_000
    line = "a call from 10.0.0.1 is refused: its token is wrong (GET /api/runs/{run})"
    assert caplog.messages == [line]
    for _ in range(3):
        world.pass_minute()
    assert caplog.messages == [line, f"{line} (the last of 9,999 like it)"]


def test_a_flood_of_one_does_not_hide_another(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Each address has a line of its own for each reason; the addresses of an IPv6 network share one."""
    for peer in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2"):
        world.refuse(peer)
    world.refuse("10.0.0.1", CredentialFault.MISSING)
    assert [line.removeprefix("a call from ").partition(" (")[0] for line in caplog.messages] == [
        "10.0.0.1 is refused: its token is wrong",
        "10.0.0.2 is refused: its token is wrong",
        "2001:db8::1 is refused: its token is wrong",
        "10.0.0.1 is refused: its token is missing",
    ]


def test_many_addresses_cost_a_bounded_number_of_lines(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that there is no room for share a line for each reason, minute after minute; all are counted."""
    for minute in range(3):
        for number in range(1000):
            world.refuse(f"10.{minute}.{number // 250}.{number % 250}", list(CredentialFault)[number % 3])
        assert len(caplog.messages) <= MOST_KINDS + 3
        caplog.clear()
        world.pass_minute()
        assert len(caplog.messages) <= 3
        caplog.clear()
        world.pass_minute()
        caplog.clear()
    assert len(world.metrics.refusals) == 3000


def test_nothing_that_a_caller_sent_is_in_the_line(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A path may hold a line break, a token or the codes of a terminal, a method is whatever is sent."""
    secret = "s3cr3t%0d%0a{}\x1b[31m"
    world.refuse(method="S3CR3T", route=None, path=f"/{secret}?token={secret}")
    world.refuse(path=f"/api/runs/{secret}", peer=None)
    assert caplog.messages == [
        "a call from 10.0.0.1 is refused: its token is wrong (a method of its own to an unknown path)",
        "a call from an unknown address is refused: its token is wrong (GET /api/runs/{run})",
    ]


class Time:
    """A clock that the test moves on."""

    now_s = 0.0

    def clock(self) -> float:
        """Seconds."""
        return self.now_s


@pytest.fixture
def time() -> Time:
    """The clock stands at 0 s."""
    return Time()


@pytest.fixture
def throttle(time: Time) -> LogThrottle:
    """The throttle writes to the log `edge`."""
    return LogThrottle(logging.getLogger("edge"), time.clock)


def test_a_flood_that_goes_on_is_a_line_a_minute(
    throttle: LogThrottle, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    """The number of lines that come makes no difference."""
    for _ in range(6 * int(EVERY_S)):
        for _ in range(3):
            throttle.warn("malformed", "malformed")
        time.now_s += 0.5
        throttle.flush()
    assert len(caplog.messages) == 1 + 3


def test_an_error_of_our_own_has_its_traceback(
    throttle: LogThrottle, caplog: pytest.LogCaptureFixture
) -> None:
    """The traceback is logged once."""
    for _ in range(2):
        throttle.warn("failed", "it failed", RuntimeError("why"))
    assert caplog.text.count("RuntimeError: why") == 1


def test_kinds_that_callers_make_up_have_a_bound(throttle: LogThrottle, time: Time) -> None:
    """There is room for a known one, and for others again when its minute is over."""
    for number in range(MOST_KINDS):
        assert throttle.has_room_for(f"from {number}")
        throttle.warn(f"from {number}", "refused")
    assert throttle.has_room_for("from 0")
    assert not throttle.has_room_for("from elsewhere")
    time.now_s += EVERY_S
    throttle.flush()
    assert throttle.has_room_for("from elsewhere")
