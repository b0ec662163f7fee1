"""Streamed responses of the API: documents in pieces, and ticks of a run as server-sent events."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import msgspec
from aiohttp import web

from oku_coordinator.runs.run_documents import encode_summary
from oku_coordinator.runs.runs import Runs

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MOST_FOLLOWERS = 48
"""Half of the connections of one address: callers behind one proxy have the rest for other calls."""
_NO_TICK = b":\n\n"
"""A comment (WHATWG HTML, section 9.2)."""


class TooManyFollowersError(Exception):
    """Too many clients are following runs."""


def build_follower(runs: Runs) -> Handler:
    """Build the handler that streams the ticks of a run as server-sent events."""
    followers = 0

    async def follow(request: web.Request) -> web.StreamResponse:
        nonlocal followers
        if followers >= MOST_FOLLOWERS:
            raise TooManyFollowersError(f"{MOST_FOLLOWERS} callers already follow runs, which is the limit")
        followers += 1
        try:
            return await _stream_ticks(request, runs)
        finally:
            followers -= 1

    return follow


async def _stream_ticks(request: web.Request, runs: Runs) -> web.StreamResponse:
    run = request.match_info["run"]
    await runs.summarize(run)  # answers 404 before the stream begins
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    try:
        async for tick in runs.followers.follow(run):
            if tick is None:
                await response.write(_NO_TICK)
            else:
                await _write_event(response, b"tick", msgspec.json.encode(tick))
        summary = await runs.summarize(run)
        await _write_event(response, b"end", await asyncio.to_thread(encode_summary, summary))
    except ConnectionResetError:
        pass  # the follower has left
    except sqlite3.OperationalError as error:
        _log.error("the ledger cannot be used: %s", error)  # the follower comes again
    return response


async def stream_pieces(request: web.Request, pieces: AsyncGenerator[bytes]) -> web.StreamResponse:
    """Stream a JSON document in pieces."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                await response.write(piece)
    except ConnectionResetError:
        pass  # the caller has left
    except Exception:  # noqa: BLE001  # it is logged; who reads must not take what he has for all of it
        _log.exception("%s %s", request.method, request.path)
        if request.transport is not None:
            request.transport.abort()
    return response


async def _write_event(response: web.StreamResponse, event: bytes, data: bytes) -> None:
    await response.write(b"event: %s\ndata: %s\n\n" % (event, data))
