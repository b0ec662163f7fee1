"""What an engine is to the rest of a worker, what it gets beside its spec and its feed, and its window.

A window is no larger than the run, or than the connections that an engine can have.
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from oku_core.errors import UserError
from oku_core.process.resources import read_open_files
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import FindFile
from oku_core.spec.values.template import Rows
from oku_workers.engines.contract.user_code_host import HostEnds, Isolation
from oku_workers.executions.execution import Execution

STUCK_S = 5.0
"""A request that has not ended so long after it was cut off is given back: it never will."""
FILES_BESIDE = 64
"""Open files of a worker that are not connections to a target."""


@dataclass
class HostLoad:
    """What a process of user code has said of itself."""

    cpu_s: float = 0.0
    busy_s: float = 0.0
    """The same, and how long it waited for a processor."""
    late_s: float = 0.0
    """How late its event loop was at the worst since `pop_late_s` was called."""
    idle_users: int = 0
    """How many of its users wait for an iteration that it has asked for and not got."""

    def pop_late_s(self) -> float:
        """How late its event loop was at the worst since the last call of this."""
        late_s, self.late_s = self.late_s, 0.0
        return late_s


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

    async def run_farewell(self, execution: Execution) -> None:
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

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their coordinates back."""
        ...

    def flush_counts(self) -> None:
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


class EngineError(UserError):
    """No request of the spec can be sent by this worker; the message is one line for the user."""


def _find_none(digest: str) -> Path:
    raise EngineError(f"the file {digest[:12]} of the run is not here")


async def _fetch_none() -> None:
    pass


@dataclass(frozen=True)
class EngineContext:
    """What an engine needs besides."""

    local_address: str | None = None
    """What to send from; the system chooses unless given."""
    tls: ssl.SSLContext | None = None
    rows: Rows | None = None
    """The rows of the run, if it has data that its requests use; user code reads its own."""
    find_file: FindFile = _find_none
    setup_data: str = "null"
    """What `setup` of the user code returned, as JSON."""
    isolation: Isolation = field(default_factory=Isolation)
    run: str = ""
    """The run, if it has user code."""
    host_ends: HostEnds = field(default_factory=HostEnds)
    fetch_files: Callable[[], Awaitable[None]] = _fetch_none
    """Fetches files of the run that were removed; `EngineError` if it cannot."""
    secrets: tuple[str, ...] = ()
    """Those that the user code can see, for its process to hide."""


def choose_window(spec: Spec, workers: int = 1) -> int:
    """How many requests of a spec may be in flight here, if so many workers share what they have together.

    What a rate may have in flight by default is no more than the system allows: nobody has asked for more.
    """
    window = max(1, min(spec.find_window(workers), spec.requests))
    return limit_window(window, spec) if spec.is_open and spec.shares_concurrency else window


def count_connections() -> int:
    """How many connections the system allows."""
    return max(1, read_open_files() - FILES_BESIDE)


def limit_window(window: int, spec: Spec) -> int:
    """How many of so many requests may be in flight by the connections that there may be.

    The system allows so many files, and a spec with HTTP/2 may say how many connections there are.
    """
    connections = count_connections()
    if spec.connections is not None:
        connections = min(connections, spec.connections * _count_hosts(spec))
    return min(window, connections * (spec.streams if spec.engine is Engine.NGHTTP2 else 1))


def describe_lowered_window(window: int, wanted: int, spec: Spec) -> str:
    """One line on why fewer requests are in flight than are wanted; empty if they are not fewer."""
    if window == wanted:
        return ""
    why = f"only {read_open_files()} open files are allowed"
    if spec.connections is not None and window == spec.connections * _count_hosts(spec) * spec.streams:
        why = f"the spec has {spec.connections} connections with {spec.streams} streams each"
    return f"{window} requests are in flight, not {wanted}: {why}"


def _count_hosts(spec: Spec) -> int:
    """To how many hosts requests go, each with connections of its own."""
    return max(1, len({(url.scheme, url.authority) for url in spec.list_places()}))
