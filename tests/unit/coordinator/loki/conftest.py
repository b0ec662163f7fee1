"""A fake Loki, and a pusher to it whose pauses are only written down."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp.test_utils import TestServer
from tests.kit.loki.fake_loki import FakeLoki

from oku_coordinator.loki.endpoint import LokiTarget
from oku_coordinator.loki.pusher import Limits, LokiPusher


@dataclass
class Diary:
    """What a pusher did beside pushing, in its order: pauses in seconds, and what it told of trouble."""

    pauses: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    async def sleep(self, pause_s: float) -> None:
        """Take no time."""
        self.pauses.append(pause_s)


@pytest.fixture
def diary() -> Diary:
    """An empty one."""
    return Diary()


@pytest.fixture
def make_pusher(diary: Diary) -> Callable[..., LokiPusher]:
    """Makes a pusher that writes a diary and whose pauses are the longest that are possible."""

    def make(target: LokiTarget, *, is_in_doubt: bool = True, **limits: float) -> LokiPusher:
        return LokiPusher(
            target,
            on_trouble=diary.troubles.append,
            limits=Limits(**limits),  # type: ignore[arg-type]
            sleep=diary.sleep,
            uniform=lambda: 1.0,
            is_in_doubt=is_in_doubt,
        )

    return make


@pytest.fixture
def loki() -> FakeLoki:
    """An empty one."""
    return FakeLoki()


@pytest.fixture
async def url(loki: FakeLoki) -> AsyncIterator[str]:
    """Where the fake listens until the end of the test."""
    async with TestServer(loki.make_app()) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.fixture
async def pusher(url: str, make_pusher: Callable[..., LokiPusher]) -> AsyncIterator[LokiPusher]:
    """Pushes to the fake; nothing that went before is in doubt."""
    async with make_pusher(LokiTarget(url=url)) as pusher:
        await pusher.push([])
        yield pusher
