"""What an engine needs beside its spec and its feed, and the error of a spec that it cannot carry out."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from oku_core.errors import UserError
from oku_core.spec.values.template import Rows
from oku_workers.engines.contract.host_ends import HostEnds
from oku_workers.engines.contract.host_isolation import Isolation


class EngineError(UserError):
    """No request of the spec can be sent by this worker; the message is one line for the user."""


FindPath = Callable[[str], Path]
"""Gives the path of a file of a run by its digest."""


def _find_none(digest: str) -> Path:
    raise EngineError(f"the file {digest[:12]} of the run is not here")


async def _fetch_none() -> None:
    pass


@dataclass(frozen=True)
class EngineContext:
    """What an engine needs besides.

    Attributes:
        local_address: what to send from; the system chooses unless given.
        tls: how to speak TLS, as `build_tls` makes it.
        rows: the rows of the run, if it has data that its requests use; user code reads its own.
        find_file: gives the path of a file of the run by its digest.
        setup_data: what `setup` of the user code returned, as JSON.
        isolation: what the process of user code gets and may take.
        run: the run, if it has user code.
        host_ends: records how processes of user code end.
        fetch_files: fetches files of the run that were removed; `EngineError` if it cannot.
        secrets: those that the user code can see, for its process to hide.
    """

    local_address: str | None = None
    tls: ssl.SSLContext | None = None
    rows: Rows | None = None
    find_file: FindPath = _find_none
    setup_data: str = "null"
    isolation: Isolation = field(default_factory=Isolation)
    run: str = ""
    host_ends: HostEnds = field(default_factory=HostEnds)
    fetch_files: Callable[[], Awaitable[None]] = _fetch_none
    secrets: tuple[str, ...] = ()
