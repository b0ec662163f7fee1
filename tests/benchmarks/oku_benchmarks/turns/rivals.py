"""The load generators beside Oku: how each is told to keep so many connections busy.

Those that take a duration get one; those that take a number of requests get as many as they last did in that
time. `wrk -t1` and `h2load -t1` have one thread. What has threads of its own is run twice: held to one
processor, as their like, and as it comes.
Those that speak HTTP/2 are told so in a list of their own.
"""

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from oku_benchmarks.install import describe_missing, find_program
from oku_benchmarks.turns.turn import CONTESTANTS


@dataclass(frozen=True, kw_only=True)
class Effort:
    """One turn: both its time and the requests that fit into it are given, each takes what it understands."""

    url: str
    """Template with `{i}` for the index, which only scripts fill in."""
    connections: int
    seconds: int
    requests: int
    account: str = ""
    """The file for what a script counts of itself."""
    streams: int = 1
    """Requests in flight on each connection, in HTTP/2."""
    more_urls: Sequence[str] = ()
    """More templates, of the same server, that are asked in turn with the first; for wrk and h2load only."""


@dataclass(frozen=True, kw_only=True)
class Rival:
    """One of them.

    Args:
        program: what it is run with, or the package of a script.
        build: its command, given the program's path and an effort.
        is_script: whether it is one of ours, which counts its requests.
        expected_rps: for a script, until its first turn has said.
    """

    program: str
    build: Callable[[str, Effort], Sequence[str]]
    is_script: bool = False
    expected_rps: float = 0.0

    def find(self) -> str | None:
        """The path of its program; None when it is missing."""
        if not self.is_script:
            return find_program(self.program)
        return sys.executable if importlib.util.find_spec(self.program) else None

    def describe_missing(self) -> str:
        """Why it is left out."""
        return f"{self.program} is not installed" if self.is_script else describe_missing(self.program)


def _wrk(program: str, effort: Effort) -> list[str]:
    command = [program, "-t1", f"-c{effort.connections}", f"-d{effort.seconds}s", _fix(effort)]
    if not effort.more_urls:
        return command
    paths = [urlsplit(url).path for url in _fix_all(effort)]
    return [*command, "-s", str(CONTESTANTS / "wrk_paths.lua"), "--", *paths]


def _h2load(program: str, effort: Effort) -> list[str]:
    urls = _fix_all(effort)
    return [program, "--h1", "-t1", f"-c{effort.connections}", "-D", str(effort.seconds), *urls]


def _oha(program: str, effort: Effort) -> list[str]:
    return [
        program, "--no-tui", "--output-format", "quiet", "-c", str(effort.connections),
        "-z", f"{effort.seconds}s", _fix(effort),
    ]  # fmt: skip


def _hey(program: str, effort: Effort) -> list[str]:
    return [program, "-c", str(effort.connections), "-z", f"{effort.seconds}s", _fix(effort)]


def _vegeta(program: str, effort: Effort) -> list[str]:
    # Not by a pipe: processor time is that of the one process, and a shell would wait for the pipe.
    script = (
        'echo "GET $1" >"$4.targets"; exec "$0" attack -targets "$4.targets" -rate 0 -max-workers "$2"'
        ' -duration "$3" -output /dev/null'
    )
    return [
        "sh", "-c", script, program, _fix(effort), str(effort.connections), f"{effort.seconds}s",
        effort.account,
    ]  # fmt: skip


def _k6(program: str, effort: Effort) -> list[str]:
    return [
        program, "run", "--quiet", "--no-usage-report", "--no-summary", "--address", "",
        "--vus", str(effort.connections), "--duration", f"{effort.seconds}s", "-e", f"TARGET={_fix(effort)}",
        str(CONTESTANTS / "k6_get.js"),
    ]  # fmt: skip


def _h2load_http2(program: str, effort: Effort) -> list[str]:
    return [
        program, "-t1", f"-c{effort.connections}", f"-m{effort.streams}", "-D", str(effort.seconds),
        *_fix_all(effort),
    ]  # fmt: skip


def _oha_http2(program: str, effort: Effort) -> list[str]:
    *flags, url = _oha(program, effort)
    return [*flags, "--http2", "--insecure", "-p", str(effort.streams), url]


def _k6_http2(program: str, effort: Effort) -> list[str]:
    # A user of k6 has a connection of its own, and waits for each answer.
    users = effort.connections * effort.streams
    *flags, script = _k6(program, replace(effort, connections=users))
    return [*flags, "--insecure-skip-tls-verify", script]


def _script(name: str) -> Callable[[str, Effort], list[str]]:
    return lambda program, effort: [
        program, str(CONTESTANTS / name), effort.url, str(effort.requests), str(effort.connections),
        effort.account,
    ]  # fmt: skip


def _fix(effort: Effort) -> str:
    return effort.url.format(i=1)


def _fix_all(effort: Effort) -> list[str]:
    return [url.format(i=1) for url in (effort.url, *effort.more_urls)]


def _hold(build: Callable[[str, Effort], list[str]], variable: str) -> Callable[[str, Effort], list[str]]:
    return lambda program, effort: ["env", f"{variable}=1", *build(program, effort)]


WRK, H2LOAD, BARE_LOOP, LOCUST = "wrk", "h2load", "bare loop", "locust"
OHA, OHA_1, K6, K6_1 = "oha", "oha, 1 thread", "k6", "k6, 1 thread"
RIVALS: Mapping[str, Rival] = {
    WRK: Rival(program="wrk", build=_wrk),
    H2LOAD: Rival(program="h2load", build=_h2load),
    OHA_1: Rival(program="oha", build=_hold(_oha, "TOKIO_WORKER_THREADS")),
    OHA: Rival(program="oha", build=_oha),
    "hey, 1 thread": Rival(program="hey", build=_hold(_hey, "GOMAXPROCS")),
    "hey": Rival(program="hey", build=_hey),
    "vegeta, 1 thread": Rival(program="vegeta", build=_hold(_vegeta, "GOMAXPROCS")),
    "vegeta": Rival(program="vegeta", build=_vegeta),
    K6_1: Rival(program="k6", build=_hold(_k6, "GOMAXPROCS")),
    K6: Rival(program="k6", build=_k6),
    LOCUST: Rival(program="locust", build=_script("locust_user.py"), is_script=True, expected_rps=8_000),
    BARE_LOOP: Rival(program="aiohttp", build=_script("bare_loop.py"), is_script=True, expected_rps=12_000),
}
HTTP2_RIVALS: Mapping[str, Rival] = {
    H2LOAD: Rival(program="h2load", build=_h2load_http2),
    OHA_1: Rival(program="oha", build=_hold(_oha_http2, "TOKIO_WORKER_THREADS")),
    OHA: Rival(program="oha", build=_oha_http2),
    K6_1: Rival(program="k6", build=_hold(_k6_http2, "GOMAXPROCS")),
    K6: Rival(program="k6", build=_k6_http2),
}
"""Those that speak HTTP/2, and how they are told; k6 does so over TLS only."""
