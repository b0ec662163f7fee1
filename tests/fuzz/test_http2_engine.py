"""Whatever frames a server of HTTP/2 sends, each request ends once and in time, and others are answered."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.kit.faults.abuse import read_rss_mb
from tests.kit.http2.answers import INVALID, VALID, Invalid, Valid
from tests.kit.http2.frames import (
    ACK,
    LARGEST_WINDOW,
    ErrorCode,
    Kind,
    Setting,
    build_data,
    build_goaway,
    build_headers,
    build_reset,
    build_settings,
    build_settings_ack,
    build_window_update,
)
from tests.kit.http2.mutation import mutate_frames, shuffle_answers, split_anywhere
from tests.kit.http2.server import Connection, Http2Server
from tests.kit.workers.engine_fixtures import worker
from tests.kit.workers.engine_worker import EngineWorker

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url

__all__ = ["worker"]

EXAMPLES = 4000
BATCH = 200
HONEST = 40
TIMEOUT_S = 0.4
SPARE_S = 10.0
"""For a busy machine."""
MOST_MB = 80
BODY = b"x" * 30_000
ROWS: list[Valid | Invalid] = [*VALID.values(), *INVALID.values()]
BUILDS = [row.build for row in ROWS if row.method == "GET"]
ASIDE = (
    build_settings({Setting.MAX_CONCURRENT_STREAMS: 0}),
    build_settings({Setting.MAX_CONCURRENT_STREAMS: 1}),
    build_settings({Setting.MAX_CONCURRENT_STREAMS: 100, Setting.INITIAL_WINDOW_SIZE: 0}),
    build_settings({Setting.HEADER_TABLE_SIZE: 0, Setting.INITIAL_WINDOW_SIZE: LARGEST_WINDOW}),
    build_goaway(0),
    build_goaway(1),
    build_goaway(5, ErrorCode.INTERNAL_ERROR),
    build_goaway(LARGEST_WINDOW),
    build_window_update(0, LARGEST_WINDOW - 65_535),
)
"""What a server may say beside its answers."""
KINDS: dict[str, dict[str, Any]] = {
    "without bodies": {},
    "with bodies": {"method": "POST", "body": BODY.decode()},
    "with bodies that are looked into": {"method": "POST", "body": "{i}", "expect_body": ("hi",)},
    "one at a time": {"streams": 1},
    "on one connection": {"connections": 1, "streams": 20},
}


class Fuzzer:
    """Plays a server that sends what is nearly right, and nothing else, as long as it is not honest.

    Args:
        seed: what its answers are made of.

    Attributes:
        is_honest: whether new connections are served well.
    """

    def __init__(self, seed: int) -> None:
        self.is_honest = False
        self._seed = seed
        self._connections = 0

    async def play(self, connection: Connection) -> None:
        """Serve a connection until its end."""
        self._connections += 1
        chance, is_honest = random.Random(f"{self._seed} {self._connections}"), self.is_honest
        greeting = build_settings()
        if not is_honest and not chance.randrange(12):
            greeting = mutate_frames(greeting + chance.choice(ASIDE), chance)
        connection.send(greeting)
        unanswered: list[int] = []
        while True:
            frame = await connection.receive()
            if frame.kind == Kind.SETTINGS and not frame.flags & ACK:
                connection.send(build_settings_ack())
            elif frame.kind == Kind.DATA and frame.payload and (is_honest or chance.randrange(4)):
                for stream in (0, frame.stream):
                    connection.send(build_window_update(stream, len(frame.payload)))
            if frame.kind == Kind.HEADERS and not frame.ends_stream and not is_honest:
                unanswered += [frame.stream] * (not chance.randrange(8))  # early
            if not frame.ends_stream:
                continue
            if is_honest:
                connection.send(answer_well(frame.stream))
                continue
            unanswered.append(frame.stream)
            if chance.randrange(3):
                await self._answer(connection, unanswered, chance)
                unanswered.clear()

    async def _answer(self, connection: Connection, streams: list[int], chance: random.Random) -> None:
        """Answer requests, some of them well, in pieces of any size."""
        answers = [build_any(stream, chance) for stream in streams]
        if not chance.randrange(16):
            answers.append(chance.choice(ASIDE))
        for piece in split_anywhere(shuffle_answers(answers, chance), chance):
            connection.send(piece)
            await asyncio.sleep(0)
        if not chance.randrange(40):
            connection.close()
        elif not chance.randrange(40):
            connection.reset()


def answer_well(stream: int) -> bytes:
    """What nobody can find fault with."""
    return build_headers(stream, [(":status", "200")]) + build_data(stream, b"hi")


def build_any(stream: int, chance: random.Random) -> bytes:
    """Some answer."""
    match chance.randrange(16):
        case 0:
            return build_reset(stream, chance.choice((ErrorCode.REFUSED_STREAM, *ErrorCode)))
        case 1:
            return mutate_frames(answer_well(stream), chance)
        case 2:
            return mutate_frames(chance.choice(BUILDS)(stream), chance)
        case 3:
            return chance.choice(BUILDS)(stream)
        case _:
            return answer_well(stream)


@pytest.fixture
async def fuzzer(seed: int) -> Fuzzer:
    """Makes up the answers."""
    return Fuzzer(seed)


@pytest.fixture
async def server(worker: EngineWorker, fuzzer: Fuzzer) -> AsyncIterator[Http2Server]:
    """Answers what the fuzzer makes up."""
    server = Http2Server(play=fuzzer.play)
    await server.start()
    yield server
    await server.end()


async def hang_up(worker: EngineWorker, server: Http2Server) -> None:
    """End all connections, and wait until the worker knows."""
    for connection in server.made:
        if not connection.is_closing:
            connection.reset()
    async with asyncio.timeout(SPARE_S):
        while not server.is_quiet:  # noqa: ASYNC110  # a server of tests has no event for it
            await asyncio.sleep(0.002)
    for _ in range(3):
        await asyncio.sleep(0.001)
        worker.build_progress()  # a turn of the worker's event loop


@pytest.mark.timeout(3600)
async def test_any_frames_end_requests_once_and_in_time(
    worker: EngineWorker, fuzzer: Fuzzer, server: Http2Server, scale: int
) -> None:
    """No request is lost or counted twice, no error is ours, and the worker neither hangs nor grows."""
    memory_mb = read_rss_mb("self")
    for number, start in enumerate(range(0, EXAMPLES * scale, BATCH)):
        changes = list(KINDS.values())[number % len(KINDS)]
        spec = Spec(
            urls=(Url(f"{server.url}/{{i}}"),), engine=Engine.NGHTTP2, timeout_s=TIMEOUT_S,
            **({"concurrency": 40, "streams": 4} | changes),
        )  # fmt: skip
        fuzzer.is_honest = False
        account = await worker.run(spec, BATCH, start=start)
        assert sum(account.outcomes) == BATCH
        assert account.given_back == []

        fuzzer.is_honest = True
        await hang_up(worker, server)
        after = await worker.run(spec, HONEST, start=start)
        assert (after.outcomes[0], worker.count_in_flight()) == (HONEST, 0)
        await hang_up(worker, server)
        server.made.clear()
    assert read_rss_mb("self") - memory_mb < MOST_MB
