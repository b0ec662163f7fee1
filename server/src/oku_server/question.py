"""Questions to the server itself: names that begin with `-/`.

| target | answer |
| --- | --- |
| `/-/healthz` | `ok` |
| `/-/served?run=RUN` | JSON, see `Description` |
"""

import json
import logging
from collections.abc import Callable
from typing import TypedDict
from urllib.parse import parse_qsl

from oku_server.answer import Answer, build_text
from oku_server.count_table import NO_RUN, is_run
from oku_server.sizes import ProcessSize


class Description(TypedDict):
    """What a server says of itself and a run.

    `served` are the requests of the run that all processes of the server received; servers with the same
    `store` share a directory of counts, and each tells the sum over all of them.
    """

    run: str
    served: int
    store: str
    processes: list[ProcessSize]


_log = logging.getLogger(__name__)


def answer_question(name: bytes, target: bytes, describe: Callable[[str], Description]) -> Answer:
    """The answer to the question `name`, whose query is in `target`; `describe` may raise `OSError`."""
    if name == b"-/healthz":
        return build_text(b"200 OK", b"ok\n")
    if name != b"-/served":
        return build_text(b"404 Not Found", b"there is no /%b\n" % name)
    query = target.partition(b"?")[2].partition(b"#")[0]
    pairs = reversed(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    run = dict(pairs).get("run", NO_RUN)
    if not is_run(run):
        text = f"run: {run[:60]!r} is not up to 40 printable ASCII characters\n"
        return build_text(b"400 Bad Request", text.encode("utf-8", "backslashreplace"))
    try:
        description = describe(run)
    except OSError:
        _log.exception("the counts cannot be read")
        return build_text(b"500 Internal Server Error", b"the counts cannot be read\n")
    return Answer(b"200 OK", json.dumps(description).encode(), b"application/json")
