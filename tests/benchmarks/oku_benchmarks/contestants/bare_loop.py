"""The loop that one would write by hand: aiohttp, uvloop and nothing of Oku, with the same settings.

`bare_loop.py URL REQUESTS CONCURRENCY FILE`: URL has `{i}` for the index, FILE gets what was counted.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL


async def work(session: ClientSession, urls: Iterator[URL], buckets: list[int], totals: list[int]) -> None:
    """Take a URL, ask it, count its bytes and its latency, until there is none left."""
    for url in urls:
        sent_ns = perf_counter_ns()
        response = await session.request("GET", url, allow_redirects=False)
        content = response.content
        received = 0
        while not content.is_eof():
            received += len(await content.readany())
        latency_us = (perf_counter_ns() - sent_ns) // 1000
        shift = latency_us.bit_length() - 11
        buckets[(shift << 10) + (latency_us >> shift) if shift > 0 else latency_us] += 1
        totals[0] += response.status == 200
        totals[1] += received


async def run(template: str, requests: int, concurrency: int) -> dict[str, int]:
    """Send all requests, at most `concurrency` at a time."""
    before, after = template.split("{i}")
    urls = (URL(f"{before}{index}{after}") for index in range(requests))
    buckets, totals = [0] * 23_552, [0, 0]
    async with ClientSession(
        connector=TCPConnector(limit=0, keepalive_timeout=15),
        timeout=ClientTimeout(total=None, sock_connect=None),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        headers={"User-Agent": "bare-loop"},
    ) as session:
        await asyncio.gather(*(work(session, urls, buckets, totals) for _ in range(concurrency)))
    return {"ok": totals[0], "bytes": totals[1], "latencies": sum(buckets)}


if __name__ == "__main__":
    url, requests, concurrency, file = sys.argv[1:]
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    account = uvloop.run(run(url, int(requests), int(concurrency)))
    Path(file).write_text(json.dumps(account))
