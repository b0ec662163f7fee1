"""Requests to the server itself: those for names that begin with `-/`.

| target | response |
| --- | --- |
| `/-/healthz` | `ok` |
| `/-/served?run=RUN` | JSON, see `Description` |
| `/-/announce?run=RUN` | the same; from here on the count of the run is kept, whatever names others send |
"""

import json
import logging
from typing import Protocol, TypedDict
from urllib.parse import parse_qsl

from oku_server.counts.count_table import NO_RUN, is_run
from oku_server.http.planned_response import Content, build_text
from oku_server.process_sizes import ProcessSize


class Description(TypedDict):
    """What a server says about itself and a run.

    `served` is the number of requests of the run that all processes of the server received; servers with the
    same `store` share a directory of counts, and each tells the sum over all of them. `kept` says whether the
    run was announced; `forgotten` is how many names that nobody announced have lost their counts.
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


_log = logging.getLogger(__name__)


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
