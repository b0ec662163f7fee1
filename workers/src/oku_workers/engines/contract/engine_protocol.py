"""The interface of engines, their context beside spec and feed, and the size of their window.

A window is no larger than the run, or than the connections that an engine can have.
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from oku_core.errors import UserError
from oku_core.process.resources import read_open_files
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import FindFile
from oku_core.spec.values.template import Rows
from oku_workers.engines.contract.user_code_host import HostEnds, Isolation
from oku_workers.engines.contract.user_output import UserOutput
from oku_workers.executions.execution import Execution

STUCK_S = 5.0
"""A request that has not ended this long after its cut is given back: it never will."""
FILES_BESIDE = 64
"""Open files of a worker that are not connections to a target."""


@dataclass
class HostLoad:
    """The load that a process of user code reports."""

    cpu_s: float = 0.0
    busy_s: float = 0.0
    """The same, with the time that it waited for a processor."""
    late_s: float = 0.0
    """The worst delay of its event loop since the last `pop_late_s`."""
    idle_users: int = 0
    """How many of its users wait for an iteration that it has asked for."""

    def pop_late_s(self) -> float:
        """Return the worst delay of its event loop since the last call."""
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
        """Whether its users may make requests while they stop."""
        ...

    async def run_farewell(self, execution: Execution) -> None:
        """Stop its users until there is more to take; their requests count in an execution."""
        ...

    @property
    def host_load(self) -> HostLoad | None:
        """The load of its process of user code; None if it has none."""
        ...

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        ...

    @property
    def keeps_window(self) -> bool:
        """Whether no more than `window` are in flight, and will be until it is set again."""
        ...

    async def open(self) -> None:
        """Prepare; `EngineError` if the spec cannot be carried out."""
        ...

    def start(self) -> None:
        """Begin to take from the feed."""
        ...

    def set_window(self, window: int) -> None:
        """Set how many requests may be in flight, 0 or more; surplus requests may end."""
        ...

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their coordinates back."""
        ...

    def flush_counts(self) -> None:
        """Count the responses buffered in this turn of the event loop."""
        ...

    def group_in_flight(self) -> Mapping[Execution, Sequence[int]]:
        """The coordinates in flight of each execution that has any."""
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
    """The inputs of an engine beside spec and feed."""

    local_address: str | None = None
    """The address to send from; None lets the system choose."""
    tls: ssl.SSLContext | None = None
    rows: Rows | None = None
    """The rows of the run, if it has data that its requests use; user code reads its own."""
    find_file: FindFile = _find_none
    setup_data: str = "null"
    """The result of `setup` of the user code, as JSON."""
    isolation: Isolation = field(default_factory=Isolation)
    run: str = ""
    """The run, if it has user code."""
    host_ends: HostEnds = field(default_factory=HostEnds)
    fetch_files: Callable[[], Awaitable[None]] = _fetch_none
    """Fetches files of the run that were removed; `EngineError` if it cannot."""
    secrets: tuple[str, ...] = ()
    """Those that the user code can see, for its process to hide."""
    output: UserOutput = field(default_factory=UserOutput)
    """Takes what the user code prints."""


@runtime_checkable
class ConnectionSharer(Protocol):
    """An engine whose connections to each host are limited by the spec."""

    def share_connections(self, connections: int) -> None:
        """Have at most this many connections to each host; surplus ones end with their requests."""


def choose_window(spec: Spec) -> int:
    """How many requests of a spec may be in flight if this is its only worker."""
    return max(1, min(spec.concurrency, spec.requests))


def count_connections() -> int:
    """How many connections the system allows."""
    return max(1, read_open_files() - FILES_BESIDE)


def limit_window(window: int, spec: Spec, connections: int | None = None) -> int:
    """The largest window, up to `window`, for which there may be enough connections.

    The system limits open files, and a spec with HTTP/2 may limit connections.

    Args:
        window: how many requests are to be in flight.
        spec: the spec.
        connections: this worker's share of its connections; None for all of them.
    """
    most = count_connections()
    if spec.connections is not None:
        most = min(most, (spec.connections if connections is None else connections) * _count_hosts(spec))
    return min(window, most * (spec.streams if spec.engine is Engine.NGHTTP2 else 1))


def describe_lowered_window(window: int, wanted: int, spec: Spec) -> str:
    """One line on why fewer requests are in flight than are wanted; empty if they are not fewer."""
    if window == wanted:
        return ""
    most = count_connections() * (spec.streams if spec.engine is Engine.NGHTTP2 else 1)
    why = f"only {read_open_files()} open files are allowed"
    if spec.connections is not None and window < most:
        why = f"the spec has {spec.connections} connections with {spec.streams} streams each"
    return f"{window} requests are in flight, not {wanted}: {why}"


def _count_hosts(spec: Spec) -> int:
    """To how many hosts requests go, each with connections of its own."""
    return max(1, len({(url.scheme, url.authority) for url in spec.list_places()}))
