"""The clients of the posts, written anew in their spirit, each as one would write it without much thought.

`posts_clients.py URL CLIENT REQUESTS FILE`: URL has `{i}` for the index, CLIENT is one of `CLIENTS`, FILE
gets how many were answered with 200, the seconds from the first request to the last answer, and the peak
memory.
Each client imports what it needs itself, so that it pays for nothing else.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

IN_FLIGHT = 1000
"""What the posts allow their asynchronous clients."""


def ask_one_by_one(urls: Iterable[str]) -> int:
    """`requests.get`, one after the other: a connection for each."""
    import requests

    return sum(requests.get(url, timeout=60).status_code == 200 for url in urls)


def ask_in_session(urls: Iterable[str]) -> int:
    """The same in a `requests.Session`: one connection for all."""
    import requests

    with requests.Session() as session:
        return sum(session.get(url, timeout=60).status_code == 200 for url in urls)


def ask_with_futures(urls: Iterable[str], workers: int) -> int:
    """`requests-futures`: a future for each request, threads behind them."""
    from requests_futures.sessions import FuturesSession

    with FuturesSession(max_workers=workers) as session:
        futures = [session.get(url, timeout=60) for url in urls]
        return sum(future.result().status_code == 200 for future in futures)


def ask_all_at_once(urls: Iterable[str]) -> int:
    """Aiohttp, a task for each request, all made at once; a semaphore bounds what is in flight."""
    import asyncio

    import aiohttp

    async def run() -> int:
        semaphore = asyncio.Semaphore(IN_FLIGHT)

        async def fetch(session: aiohttp.ClientSession, url: str) -> int:
            async with semaphore, session.get(url) as response:
                await response.read()
                return response.status

        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            tasks = [asyncio.ensure_future(fetch(session, url)) for url in urls]
            return sum(status == 200 for status in await asyncio.gather(*tasks))

    return asyncio.run(run())


def ask_a_limited_number(urls: Iterable[str]) -> int:
    """Aiohttp, tasks made one by one as others end, after the `limited_as_completed` of the posts."""
    import asyncio
    from itertools import islice

    import aiohttp

    async def fetch(session: aiohttp.ClientSession, url: str) -> int:
        async with session.get(url) as response:
            await response.read()
            return response.status

    async def run() -> int:
        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            coroutines = (fetch(session, url) for url in urls)
            tasks = {asyncio.ensure_future(coroutine) for coroutine in islice(coroutines, IN_FLIGHT)}
            ok = 0
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                ok += sum(task.result() == 200 for task in done)
                tasks |= {asyncio.ensure_future(coroutine) for coroutine in islice(coroutines, len(done))}
            return ok

    return asyncio.run(run())


CLIENTS: dict[str, Callable[[Iterable[str]], int]] = {
    "requests": ask_one_by_one,
    "session": ask_in_session,
    "futures-2": lambda urls: ask_with_futures(urls, 2),
    "futures-100": lambda urls: ask_with_futures(urls, 100),
    "aiohttp-gather": ask_all_at_once,
    "aiohttp-limited": ask_a_limited_number,
}


def find_peak_mb() -> float:
    """The largest memory of this process so far, in MB of 10**6 bytes."""
    status = Path("/proc/self/status").read_text()
    peak_kb = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak_kb) * 1024 / 1e6


def run(url: str, client: str, requests: int) -> dict[str, float]:
    """Let a client ask for all URLs; the clock starts as it takes the first, after its imports."""
    before, after = url.split("{i}")
    began_at: list[float] = []

    def build_urls() -> Iterator[str]:
        began_at.append(time.perf_counter())
        for index in range(requests):
            yield f"{before}{index}{after}"

    ok = CLIENTS[client](build_urls())
    return {"ok": ok, "active_s": time.perf_counter() - began_at[0], "peak_mb": find_peak_mb()}


if __name__ == "__main__":
    url, client, requests, file = sys.argv[1:]
    account = run(url, client, int(requests))
    Path(file).write_text(json.dumps(account))
