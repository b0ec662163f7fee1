"""Delay and seed by request: how `oku run --delay --seed` overrides what servers were started with."""

import asyncio
import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import OKU
from tests.kit.servers.delay_server import PATIENCE_S, DelayServer, Start

TIMER_ERROR_S = 0.002
"""The event loop counts in milliseconds."""
OVERRIDES: list[dict[str, str]] = [
    {},
    {"Oku-Delay": "1ms..40ms"},
    {"Oku-Seed": "7"},
    {"oku-seed": "7", "oku-delay": "1ms..40ms"},
]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that end with the test."""
    servers = Start(tmp_path)
    yield servers
    servers.end()


async def fetch_delays(server: DelayServer, headers: Mapping[str, str]) -> list[str]:
    """The delays that the first indices are told, each of them waited for; over few connections."""
    timeout, connector = aiohttp.ClientTimeout(total=PATIENCE_S), aiohttp.TCPConnector(limit=3)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as client:

        async def fetch_delay(index: int) -> str:
            started_at = time.monotonic()
            async with client.get(f"{server.url}/{index}", headers={"Oku-Run": "a", **headers}) as response:
                assert await response.text() == "Hello, World!"
            assert time.monotonic() - started_at >= float(response.headers["Delay"]) - TIMER_ERROR_S
            return response.headers["Delay"]

        return await asyncio.gather(*(fetch_delay(index) for index in range(40)))


async def test_one_server_gives_each_request_its_own_delay(start: Start) -> None:
    """It does so at the same time, and gives the same delays as servers that were started with the flags."""
    flags = [
        ("--delay", "0ms..20ms", "--seed", "3"),
        ("--delay", "1ms..40ms", "--seed", "3"),
        ("--delay", "0ms..20ms", "--seed", "7"),
        ("--delay", "1ms..40ms", "--seed", "7"),
    ]
    server = start(*flags[0], "--processes", "2")
    by_header = await asyncio.gather(*(fetch_delays(server, overrides) for overrides in OVERRIDES))
    by_flag = [await fetch_delays(start(*of_server), {}) for of_server in flags]
    assert by_header == by_flag
    assert len({tuple(delays) for delays in by_header}) == len(OVERRIDES)


def test_an_override_that_is_not_valid_is_refused(start: Start) -> None:
    """It gets status 400, one line and the end of the connection, and is not counted; others are served."""
    server = start()
    for header, message in [
        (b"Oku-Delay: soon", b"Oku-Delay: soon is not a delay such as 20ms, 0..3s, "),
        (b"Oku-Seed: many", b"Oku-Seed: many is not a whole number between 0 and 9223372036854775807"),
    ]:
        with socket.create_connection(server.endpoint, PATIENCE_S) as connection:
            connection.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\nOku-Run: a\r\n" + header + b"\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert body.startswith(message)
        assert body.splitlines(keepends=True) == [body]
    with socket.create_connection(server.endpoint, PATIENCE_S) as connection:
        connection.sendall(b"GET /-/served?run=a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["served"] == 0


@pytest.mark.parametrize("engine", ["aiohttp", "httptools"])
def test_a_run_elsewhere_has_the_delays_that_it_asks_for(tmp_path: Path, start: Start, engine: str) -> None:
    """What the servers were started with does not matter; a run that asks for no delay has theirs."""
    server = start("--delay", "1s")
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", "--server-url", server.url) as api,
        subprocess.Popen(
            [*OKU, "worker", "--broker-url", broker_url, "--name", "w"], stderr=subprocess.DEVNULL
        ) as worker,
    ):

        def run(*flags: str) -> dict[str, Any]:
            where = ("--coordinator", api.url, "--token", TOKEN, "--json", "--quiet")
            command = [*OKU, "run", "--requests", "10", "--engine", engine, *flags, *where]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert ended.returncode == 0, ended.stderr
            summary: dict[str, Any] = json.loads(ended.stdout)
            assert_completed(summary)
            assert summary["outcomes"]["ok"] == summary["servers"]["served"] == 10
            return summary

        try:
            theirs, none = run(), run("--delay", "0s")
            # Of the first ten draws of `0..1s`, nine are 1 s with the seed 5, and one is with the seed 23.
            most, one = (run("--delay", "0..1s", "--seed", seed) for seed in ("5", "23"))
        finally:
            worker.terminate()
    assert theirs["latency_ms"]["min"] >= 1000 - 1000 * TIMER_ERROR_S
    assert none["latency_ms"]["max"] < 1000
    assert most["latency_ms"]["mean"] >= 900
    assert 100 <= one["latency_ms"]["mean"] < 900
