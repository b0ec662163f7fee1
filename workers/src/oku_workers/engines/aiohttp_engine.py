"""The default engine: aiohttp's client, one coroutine for each request in flight.

Each of the `concurrency` slots takes an index, sends its request, reads the body in chunks and drops it, and
takes the next. What each setting is worth is written down in docs/decisions/0005-aiohttp-engine.md.
"""

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientPayloadError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.http_exceptions import ContentLengthError, TransferEncodingError
from yarl import URL

from oku_core.request import build_headers, build_template, is_constant
from oku_core.spec import Spec, build_expected_statuses
from oku_workers.feed import Feed
from oku_workers.hand import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, TIMEOUT, Hand

_log = logging.getLogger(__name__)

USER_AGENT = "oku/0.1"

_GIVEN_BACK = -1
"""What a slot is told, beside an outcome, when its request is cut off."""
_KEEPALIVE_S = 15.0
"""Idle connections are closed after this, sooner than most servers do it."""
_SWEEP_S = 0.25


class _Slot:
    """One request in flight, or none while `sent_ns` is 0."""

    __slots__ = ("hand", "index", "sent_ns", "task", "verdict")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.hand: Hand | None = None
        self.index = 0
        self.sent_ns = 0
        self.verdict: int | None = None

    def cut(self, verdict: int) -> None:
        """End the request that is in flight; its slot accounts for it with `verdict`."""
        if self.task is not None and self.sent_ns and self.verdict is None:
            self.verdict = verdict
            self.task.cancel()


class AiohttpEngine:
    """See `oku_workers.engines.EngineProtocol`. Belongs to the thread of the event loop.

    Args:
        spec: what to send; its URLs are those to ask.
        feed: where the indices come from.
    """

    def __init__(self, spec: Spec, feed: Feed) -> None:
        self._spec = spec
        self._feed = feed
        self._slots = [_Slot() for _ in range(spec.concurrency)]
        self._sweeper: asyncio.Task[None] | None = None
        self._session = _build_session(spec)

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return sum(slot.sent_ns != 0 for slot in self._slots)

    def start(self) -> None:
        """Begin to take from the feed."""
        for slot in self._slots:
            slot.task = asyncio.ensure_future(self._work(slot))
        self._sweeper = asyncio.ensure_future(self._sweep())

    def cut_off(self, hand: Hand) -> None:
        """Drop the requests of a lease that are in flight and give their indices back."""
        for slot in self._slots:
            if slot.hand is hand:
                slot.cut(_GIVEN_BACK)

    async def close(self) -> None:
        """Stop, and close every connection."""
        tasks = [task for task in (self._sweeper, *(slot.task for slot in self._slots)) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    async def _work(self, slot: _Slot) -> None:
        feed, request, method = self._feed, self._session.request, self._spec.method
        expected = build_expected_statuses(self._spec)
        build_url = _build_urls(self._spec)
        build_arguments = _build_arguments(self._spec)
        while True:
            hand = feed.current
            if hand is None:
                await feed.wait()
                continue
            index = hand.next_index
            hand.next_index = index + 1
            if hand.next_index == hand.stop:
                feed.advance()
            slot.hand, slot.index = hand, index
            slot.sent_ns = sent_ns = perf_counter_ns()
            try:
                response = await request(
                    method, build_url(index), allow_redirects=False, **build_arguments(index)
                )
                content = response.content
                while not content.is_eof():
                    await content.readany()
            except asyncio.CancelledError:
                if slot.verdict is None:
                    raise
                self._account_cut(slot, hand, index)
            except Exception as error:  # noqa: BLE001  # every request ends in an outcome, whatever was raised
                hand.fail(classify(error))
            else:
                latency_us = (perf_counter_ns() - sent_ns) // 1000
                status = response.status
                hand.answer(status, latency_us, content.total_bytes, expected=status in expected)
            slot.sent_ns = 0

    @staticmethod
    def _account_cut(slot: _Slot, hand: Hand, index: int) -> None:
        verdict, slot.verdict = slot.verdict, None
        if slot.task is not None:
            slot.task.uncancel()
        if verdict == _GIVEN_BACK:
            hand.give_back(index)
        elif verdict is not None:
            hand.fail(verdict)

    async def _sweep(self) -> None:
        """One timer for all requests: aiohttp's own costs a timer each (dependencies: 10 % of a request)."""
        limit_ns = int(self._spec.timeout_s * 1e9)
        pause_s = min(_SWEEP_S, max(self._spec.timeout_s / 50, 0.001))
        while True:
            await asyncio.sleep(pause_s)
            oldest = perf_counter_ns() - limit_ns
            for slot in self._slots:
                if 0 < slot.sent_ns < oldest:
                    slot.cut(TIMEOUT)


def classify(error: Exception) -> int:
    """The outcome, as an index, of a request that ended with an exception of aiohttp."""
    if isinstance(error, ClientConnectorError):
        return CONNECT_ERROR
    if isinstance(error, ClientPayloadError):
        # A body that ends early is a lost connection, one that makes no sense is not.
        return PROTOCOL_ERROR if _is_malformed(error) else DISCONNECTED
    if isinstance(error, ClientConnectionError):
        return DISCONNECTED
    return PROTOCOL_ERROR


def _is_malformed(error: BaseException) -> bool:
    cause = error.__cause__
    if isinstance(cause, ContentLengthError):
        return False
    return isinstance(cause, TransferEncodingError) and "Not enough data" not in str(cause)


def _build_session(spec: Spec) -> ClientSession:
    session = ClientSession(
        connector=TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S),
        timeout=ClientTimeout(total=None, sock_connect=None),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        headers=_build_constant_headers(spec),
    )
    # aiohttp sends an idempotent request a second time when a kept-alive connection turns out closed, and
    # has no public switch for it. That would be a request on the wire that nobody counts.
    if not hasattr(session, "_retry_connection"):
        raise RuntimeError("this aiohttp cannot be kept from sending requests twice")
    session._retry_connection = False  # noqa: SLF001
    return session


def _build_constant_headers(spec: Spec) -> dict[str, str]:
    headers = {"User-Agent": USER_AGENT}
    if all(is_constant(header) for header in spec.headers):
        headers |= dict(build_headers(spec)(0))
    return headers


def _build_urls(spec: Spec) -> Callable[[int], URL]:
    """A function from an index to its URL; with several URLs, index `i` asks the `i` modulo how many."""
    builders = [_build_url(url) for url in spec.urls]
    if len(builders) == 1:
        return builders[0]
    count = len(builders)
    return lambda index: builders[index % count](index)


def _build_url(template: str) -> Callable[[int], URL]:
    if is_constant(template):
        url = URL(template)
        return lambda _: url
    text = build_template(template)
    return lambda index: URL(text(index))


def _build_arguments(spec: Spec) -> Callable[[int], dict[str, Any]]:
    """A function from an index to what its request carries beside method and URL."""
    headers = None if all(is_constant(header) for header in spec.headers) else build_headers(spec)
    body = None if spec.body is None else build_template(spec.body)
    if headers is None and body is None:
        nothing: dict[str, Any] = {}
        return lambda _: nothing

    def build(index: int) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        if headers is not None:
            arguments["headers"] = headers(index)
        if body is not None:
            arguments["data"] = body(index).encode()
        return arguments

    return build
