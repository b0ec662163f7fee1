"""The scenario of two requests as a loop by hand: aiohttp, uvloop and nothing of Oku.

`two_requests_loop.py HOST ITERATIONS USERS`.
"""

import asyncio
import sys
from collections.abc import Iterator

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector


async def work(session: ClientSession, iterations: Iterator[int]) -> None:
    """Ask for two things, one after the other, until there is no iteration left."""
    for _ in iterations:
        for path in ("/cart", "/order"):
            async with session.get(path) as response:
                await response.read()


async def run(host: str, iterations: int, users: int) -> None:
    """Carry out all iterations, `users` at a time."""
    left = iter(range(iterations))
    async with ClientSession(
        host,
        connector=TCPConnector(limit=0),
        timeout=ClientTimeout(total=30),
        cookie_jar=DummyCookieJar(),
    ) as session:
        await asyncio.gather(*(work(session, left) for _ in range(users)))


if __name__ == "__main__":
    host, iterations, users = sys.argv[1:]
    uvloop.run(run(host, int(iterations), int(users)))
