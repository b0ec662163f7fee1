"""Requests to the server itself, for names that begin with `-/`.

| target | response |
| --- | --- |
| `/-/healthz` | `ok` |
| `/-/served?run=RUN` | JSON, see `Description` |
| `/-/announce?run=RUN` | the same; from here on no other name can displace the count of the run |

The operating system reports the memory of the server's processes; the summaries of runs have it.
"""

import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypedDict
from urllib.parse import parse_qsl

from oku_core.process.resources import measure_peak_rss_mb
from oku_server.counts.count_table import NO_RUN, is_run
from oku_server.http.planned_response import Content, build_text

_PROC = Path("/proc")
_FRESH_S = 1.0

_log = logging.getLogger(__name__)


class ProcessSize(TypedDict):
    """A process and its peak resident memory so far, in MB of 10**6 bytes."""

    pid: int
    peak_rss_mb: float


class Description(TypedDict):
    """A server's description of itself and a run.

    `served` is the number of requests of the run that all processes of the server received; servers with the
    same `store` share a directory of counts, and each reports the sum over all of them. `kept` is whether the
    run was announced; `forgotten` is how many names without an announcement have lost their counts.
    """

    run: str
    served: int
    store: str
    kept: bool
    forgotten: int
    processes: list[ProcessSize]


class Describe(Protocol):
    """Describes a run."""

    def __call__(self, run: str, *, announces: bool) -> Description:
        """Describe a run, and announce it first if asked to; may raise `OSError`."""


def answer_admin(name: bytes, target: bytes, describe: Describe) -> Content:
    """The response to a request for `name`, whose query is in `target`."""
    if name == b"-/healthz":
        return build_text(b"200 OK", b"ok\n")
    if name not in (b"-/served", b"-/announce"):
        return build_text(b"404 Not Found", b"there is no /%b\n" % name)
    query = target.partition(b"?")[2].partition(b"#")[0]
    pairs = reversed(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    run = dict(pairs).get("run", NO_RUN)
    if not is_run(run):
        text = f"run: {run[:60]!r} is not up to 40 printable ASCII characters\n"
        return build_text(b"400 Bad Request", text.encode("utf-8", "backslashreplace"))
    try:
        description = describe(run, announces=name == b"-/announce")
    except OSError:
        _log.exception("the counts cannot be read")
        return build_text(b"500 Internal Server Error", b"the counts cannot be read\n")
    return Content(b"200 OK", json.dumps(description).encode(), b"application/json")


class RecentSizes:
    """The sizes of all processes that share the port, read at most once a second because anybody may ask."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._sizes: list[ProcessSize] = []
        self._stale_at = time.monotonic()

    def list(self) -> list[ProcessSize]:
        """The sizes of all processes, at most one second old."""
        if (now := time.monotonic()) >= self._stale_at:
            self._sizes, self._stale_at = list_sizes(self._processes), now + _FRESH_S
        return self._sizes


def list_sizes(processes: int) -> list[ProcessSize]:
    """The sizes of all processes that share the port, or of this one alone if the system shows no others.

    Args:
        processes: how many processes share the port; several are children of one parent.
    """
    sizes = sorted(_list_siblings(), key=lambda size: size["pid"]) if processes > 1 else []
    return sizes or [ProcessSize(pid=os.getpid(), peak_rss_mb=measure_peak_rss_mb())]


def _list_siblings() -> Iterator[ProcessSize]:
    parent = str(os.getppid())
    for status in _PROC.glob("[0-9]*/status"):
        try:
            # The names of processes may have any bytes.
            lines = status.read_text(encoding="utf-8", errors="replace").split("\n")
            fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        except OSError:
            continue  # the process has ended
        if fields.get("PPid") == parent and "VmHWM" in fields:
            yield ProcessSize(
                pid=int(fields["Pid"]), peak_rss_mb=int(fields["VmHWM"].split()[0]) * 1024 / 1e6
            )
