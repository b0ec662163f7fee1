"""What an engine is to the rest of a worker, and which one a spec gets.

This loads every engine, and aiohttp with one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_workers.engines.aiohttp.engine import AiohttpEngine
from oku_workers.engines.engine_context import EngineContext
from oku_workers.engines.host_load import HostLoad
from oku_workers.engines.httptools.engine import HttptoolsEngine
from oku_workers.engines.nghttp2.engine import Nghttp2Engine
from oku_workers.engines.user_code.engine import UserCodeEngine
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed_protocol import FeedProtocol


class EngineProtocol(Protocol):
    """Keeps at most `window` requests of a feed in flight, in the running event loop.

    Attributes:
        window: the `concurrency` of the spec, or less where the system or the run does not allow it, until it
            is set.
        fault: why it has given up; empty as long as it has not.
    """

    window: int
    fault: str

    @property
    def has_farewell(self) -> bool:
        """Whether what it runs may make requests when it is told that there is no more to do."""
        ...

    async def take_farewell(self, execution: Execution) -> None:
        """Have what it runs end until there is more to take; requests of it count in an execution."""
        ...

    @property
    def host_load(self) -> HostLoad | None:
        """How busy the process is that it has beside the worker; None if it has none."""
        ...

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        ...

    async def open(self) -> None:
        """Make ready; `EngineError` if the spec cannot be carried out."""
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

    def count_waiting(self) -> None:
        """Count what has ended and waits for the end of this turn of the event loop to be counted."""
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
    context: EngineContext | None = None,
) -> EngineProtocol:
    """Make the engine that the spec names.

    Args:
        spec: what to send.
        feed: gives the indices.
        supervisor: keeps the engine's tasks going.
        context: what it needs besides.

    Raises:
        EngineError: the spec cannot be carried out here.
    """
    return _ENGINES[spec.engine](spec, feed, supervisor, context or EngineContext())


_Build = Callable[[Spec, FeedProtocol, Supervisor, EngineContext], EngineProtocol]
_ENGINES: Mapping[Engine, _Build] = {
    Engine.AIOHTTP: AiohttpEngine,
    Engine.HTTPTOOLS: HttptoolsEngine,
    Engine.NGHTTP2: Nghttp2Engine,
    Engine.PYTHON: UserCodeEngine,
    Engine.LOCUST: UserCodeEngine,
}
