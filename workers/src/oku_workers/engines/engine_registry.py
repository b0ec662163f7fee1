"""What an engine is to the rest of a worker, and which one a spec gets.

This loads every engine, and aiohttp with one of them.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.template import Rows
from oku_workers.engines.aiohttp.engine import AiohttpEngine
from oku_workers.engines.httptools.engine import HttptoolsEngine
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed_protocol import FeedProtocol


class EngineProtocol(Protocol):
    """Keeps at most `window` requests of a feed in flight, in the running event loop.

    Attributes:
        window: the `concurrency` of the spec, or less where the system or the run does not allow it, until it
            is set.
    """

    window: int

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        ...

    def start(self) -> None:
        """Begin to take from the feed."""
        ...

    def set_window(self, window: int) -> None:
        """Have so many requests in flight from now on, 0 or more; those beyond may end."""
        ...

    def cut_off(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their coordinates back."""
        ...

    def group_in_flight(self) -> Mapping[Execution, Sequence[int]]:
        """The coordinates that were taken and have not ended, for each execution that has any."""
        ...

    def sweep(self) -> None:
        """End the requests that have taken longer than the limit; an engine does it itself all the time.

        A request that does not end `STUCK_S` seconds after it was cut off is given back.
        """
        ...

    async def close(self) -> None:
        """Stop, and close every connection."""
        ...


def build_engine(
    spec: Spec,
    feed: FeedProtocol,
    supervisor: Supervisor,
    local_address: str | None = None,
    tls: ssl.SSLContext | None = None,
    rows: Rows | None = None,
) -> EngineProtocol:
    """Make the engine that the spec names.

    Args:
        spec: what to send.
        feed: gives the indices.
        supervisor: keeps the engine's tasks going.
        local_address: what to send from; the system chooses unless given.
        tls: how to speak TLS, as `build_tls` makes it.
        rows: the rows of the run, if it has data that its requests use.

    Raises:
        EngineError: the spec cannot be carried out here.
    """
    return _ENGINES[spec.engine](spec, feed, supervisor, local_address, tls, rows)


_Build = Callable[
    [Spec, FeedProtocol, Supervisor, str | None, ssl.SSLContext | None, Rows | None], EngineProtocol
]
_ENGINES: Mapping[Engine, _Build] = {
    Engine.AIOHTTP: AiohttpEngine,
    Engine.HTTPTOOLS: HttptoolsEngine,
}
