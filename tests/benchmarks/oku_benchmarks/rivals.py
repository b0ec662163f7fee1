"""The load generators beside Oku: how each is told what to do, and the scripts that some of them need.

Those that take a duration get one; those that take a number of requests get as many as they last sent in that
time. `wrk -t1` and `h2load -t1` have one thread. What has threads of its own takes part twice: held to one
processor, as their like, and as it comes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from oku_benchmarks.contest import Contestant, Effort

_TWO = ("/cart", "/order")
_LOCUSTFILE = """\
from locust import FastHttpUser, constant, task

class Visitor(FastHttpUser):
    wait_time = constant(0)

    @task
    def visit(self):
"""
SCRIPTS: Mapping[str, str] = {
    "k6_get.js": """\
import http from "k6/http";
export const options = { discardResponseBodies: true };
export default function () { for (const url of __ENV.TARGETS.split(" ")) http.get(url); }
""",
    "k6_rate.js": """\
import http from "k6/http";
export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ["med", "p(99)", "max"],
  scenarios: {
    constant: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE),
      timeUnit: "1s",
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: Number(__ENV.CONNECTIONS),
    },
  },
};
export default function () { http.get(__ENV.TARGET); }
""",
    "one_locustfile.py": _LOCUSTFILE + '        self.client.get("/item")\n',
    "two_locustfile.py": _LOCUSTFILE + "".join(f'        self.client.get("{path}")\n' for path in _TWO),
    "two_scenario.py": """\
from oku import Http

async def scenario(http: Http) -> None:
    await http.get("/cart")
    await http.get("/order")
""",
    "counted_scenario.py": """\
from oku import Http

async def scenario(http: Http) -> None:
    await http.get("/{i}")
""",
    "bare_loop.py": """\
import asyncio, sys
import uvloop
from aiohttp import ClientSession, DummyCookieJar, TCPConnector

async def work(session, indices, paths):
    for index in indices:
        for path in paths:
            async with session.get(path.replace("{i}", str(index))) as response:
                await response.read()

async def run(requests, concurrency, paths):
    indices = iter(range(requests))
    connector = TCPConnector(limit=0)
    async with ClientSession(connector=connector, cookie_jar=DummyCookieJar()) as session:
        await asyncio.gather(*(work(session, indices, paths) for _ in range(concurrency)))

requests, concurrency, *paths = sys.argv[1:]
uvloop.run(run(int(requests), int(concurrency), paths))
""",
    "session.py": """\
import sys
import requests

count, url = sys.argv[1:]
with requests.Session() as session:
    for index in range(int(count)):
        session.get(url.replace("{i}", str(index)), timeout=60)
""",
}
"""As users write them; `session.py` is the first client of the posts."""


def write_script(folder: Path, name: str) -> str:
    """Write a script into a folder; its path."""
    path = folder / name
    path.write_text(SCRIPTS[name])
    return str(path)


def _wrk(program: str, effort: Effort) -> list[str]:
    return [program, "-t1", f"-c{effort.connections}", f"-d{effort.seconds}s", effort.fixed_url]


def _h2load(program: str, effort: Effort) -> list[str]:
    time = ["-D", str(effort.seconds), effort.fixed_url]
    return [program, "--h1", "-t1", f"-c{effort.connections}", *time]


def _h2load_http2(program: str, effort: Effort) -> list[str]:
    time = ["-D", str(effort.seconds), effort.fixed_url]
    return [program, "-t1", f"-c{effort.connections}", f"-m{effort.streams}", *time]


def _oha(program: str, effort: Effort) -> list[str]:
    return [
        program, "--no-tui", "--output-format", "quiet", "-c", str(effort.connections),
        "-z", f"{effort.seconds}s", "--insecure", effort.fixed_url,
    ]  # fmt: skip


def _oha_http2(program: str, effort: Effort) -> list[str]:
    return [*_oha(program, effort), "--http2", "-p", str(effort.streams)]


def _hey(program: str, effort: Effort) -> list[str]:
    return [program, "-c", str(effort.connections), "-z", f"{effort.seconds}s", effort.fixed_url]


def _vegeta(program: str, effort: Effort) -> list[str]:
    targets = effort.folder / "vegeta.targets"
    targets.write_text(f"GET {effort.fixed_url}\n")
    return [
        program, "attack", "-targets", str(targets), "-rate", "0", "-max-workers", str(effort.connections),
        "-duration", f"{effort.seconds}s", "-output", "/dev/null",
    ]  # fmt: skip


def _k6(*paths: str) -> Callable[[str, Effort], list[str]]:
    def build(program: str, effort: Effort) -> list[str]:
        # A user has a connection of its own, and waits for each answer.
        users = str(effort.connections * effort.streams)
        targets = " ".join([f"{effort.base}{path}" for path in paths] or [effort.fixed_url])
        return [
            program, "run", "--quiet", "--no-usage-report", "--no-summary", "--address", "",
            "--vus", users, "--duration", f"{effort.seconds}s", "-e", f"TARGETS={targets}",
            "--insecure-skip-tls-verify", write_script(effort.folder, "k6_get.js"),
        ]  # fmt: skip

    return build


def _locust(script: str, *flags: str) -> Callable[[str, Effort], list[str]]:
    return lambda program, effort: [
        program, "-m", "locust", "--locustfile", write_script(effort.folder, script), "--headless",
        "--only-summary", "--users", str(effort.connections), "--spawn-rate", str(effort.connections),
        "--run-time", f"{effort.seconds}s", "--host", effort.base, *flags,
    ]  # fmt: skip


def _loop(*paths: str) -> Callable[[str, Effort], list[str]]:
    return lambda program, effort: [
        program, write_script(effort.folder, "bare_loop.py"), str(effort.requests), str(effort.connections),
        *([f"{effort.base}{path}" for path in paths] or [effort.url]),
    ]  # fmt: skip


def _session(program: str, effort: Effort) -> list[str]:
    return [program, write_script(effort.folder, "session.py"), str(effort.requests), effort.url]


def _hold(build: Callable[[str, Effort], list[str]], variable: str) -> Callable[[str, Effort], list[str]]:
    return lambda program, effort: ["env", f"{variable}=1", *build(program, effort)]


def build_oku(*flags: str) -> Callable[[str, Effort], list[str]]:
    """Oku with one worker and these flags, at the URL of the target."""
    return lambda _, effort: [
        effort.url, "--requests", str(effort.requests), "--workers", "1",
        "--concurrency", str(effort.connections * effort.streams), *flags,
    ]  # fmt: skip


def build_oku_code(script: str) -> Callable[[str, Effort], list[str]]:
    """Oku with one worker that runs user code."""
    return lambda _, effort: [
        write_script(effort.folder, script), "--host", effort.base, "--iterations", str(effort.requests),
        "--workers", "1", "--concurrency", str(effort.connections),
    ]  # fmt: skip


HTTPTOOLS = Contestant(is_oku=True, build=build_oku("--engine", "httptools"), expected_rps=20_000)
AIOHTTP = Contestant(is_oku=True, build=build_oku("--engine", "aiohttp"), expected_rps=4_000)
WRK = Contestant(program="wrk", build=_wrk)
H2LOAD = Contestant(program="h2load", build=_h2load)
BARE_LOOP = Contestant(package="aiohttp", build=_loop(), counts=True, expected_rps=4_000)

RATE: Mapping[str, Contestant] = {
    "oku": HTTPTOOLS,
    "wrk": WRK,
    "h2load": H2LOAD,
    "oha, 1 thread": Contestant(program="oha", build=_hold(_oha, "TOKIO_WORKER_THREADS")),
    "oha": Contestant(program="oha", build=_oha),
    "hey, 1 thread": Contestant(program="hey", build=_hold(_hey, "GOMAXPROCS")),
    "hey": Contestant(program="hey", build=_hey),
    "vegeta, 1 thread": Contestant(program="vegeta", build=_hold(_vegeta, "GOMAXPROCS")),
    "vegeta": Contestant(program="vegeta", build=_vegeta),
    "k6, 1 thread": Contestant(program="k6", build=_hold(_k6(), "GOMAXPROCS")),
    "k6": Contestant(program="k6", build=_k6()),
    "locust": Contestant(package="locust", build=_locust("one_locustfile.py")),
    "bare loop": BARE_LOOP,
    "`requests`, one by one": Contestant(package="requests", build=_session, counts=True, expected_rps=500),
    "oku, aiohttp": AIOHTTP,
}
HTTP2: Mapping[str, Contestant] = {
    "oku": Contestant(
        is_oku=True,
        build=lambda program, effort: build_oku(
            "--http2" if effort.url.startswith("https") else "--http2-prior-knowledge",
            "--insecure", "--streams", str(effort.streams),
        )(program, effort),
        expected_rps=40_000,
    ),
    "h2load": replace(H2LOAD, build=_h2load_http2),
    "oha, 1 thread": Contestant(program="oha", build=_hold(_oha_http2, "TOKIO_WORKER_THREADS")),
    "oha": Contestant(program="oha", build=_oha_http2),
}  # fmt: skip
HTTP2_TLS: Mapping[str, Contestant] = {**HTTP2, "k6": RATE["k6"]}
"""k6 speaks HTTP/2 only over TLS."""
USER_CODE: Mapping[str, Contestant] = {
    "oku, locustfile": Contestant(is_oku=True, package="locust", build=build_oku_code("one_locustfile.py")),
    "locust": Contestant(package="locust", build=_locust("one_locustfile.py")),
    "locust, master and worker": Contestant(
        package="locust",
        build=_locust("one_locustfile.py", "--processes", "1", "--master-bind-host", "127.0.0.1"),
    ),
}
TWO_REQUESTS: Mapping[str, Contestant] = {
    "oku, scenario": Contestant(is_oku=True, build=build_oku_code("two_scenario.py"), steps=2),
    "oku, locustfile": Contestant(
        is_oku=True, package="locust", build=build_oku_code("two_locustfile.py"), steps=2
    ),
    "locust": Contestant(package="locust", build=_locust("two_locustfile.py"), steps=2),
    "bare loop": Contestant(package="aiohttp", build=_loop(*_TWO), counts=True, steps=2),
    "k6": Contestant(program="k6", build=_k6(*_TWO), steps=2),
}
