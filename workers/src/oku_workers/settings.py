"""The settings of a worker process, and its name."""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from oku_core.process.landlock import Confinement
from oku_core.process.private_files import make_own_folder
from oku_core.spec.secrets import NO_SOURCES, SpecSources


class WorkerIdentity(NamedTuple):
    """The name of a worker, which outlives its process, and the incarnation, which does not."""

    name: str
    incarnation: str


def find_files_cache() -> Path:
    """The folder that all workers of one user of a machine share; it is made, so that no other user can."""
    place, name = Path(tempfile.gettempdir()), f"oku-files-{os.geteuid()}"
    try:
        return make_own_folder(place, name)
    except OSError:  # the disk is full, perhaps; a worker that needs the folder reports it
        return place / name


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker.

    Args:
        broker_url: the URL of the broker, as Celery takes it.
        message_key: signs the messages.
        name: the worker's name; no two that run at the same time may share one.
        grace_s: how long requests in flight may go on after SIGTERM.
        local_address: what to send from; the system chooses unless given.
        ready_file: a file that exists while the worker can take leases.
        health_port: a port that answers HTTP as long as the event loop does, for probes of liveness and of
            readiness.
        health_host: the address that it is on; `*` is all addresses, of IPv4 and of IPv6.
        sources: has the files and secrets that specs name.
        files_cache: the folder of the files of runs; several workers of one machine may share it.
        most_cache_bytes: how large these may be together.
        user_code_memory: how much memory a process of user code may hold; 0 without a limit.
        user_code_niceness: how much such a process gives way to this one, 0 to 19.
        inherited_variables: names of environment variables that user code sees besides harmless ones; `*` is
            all but those of Oku.
        confinement: whether user code is confined to its own files.
        kernel: whose monotonic clock this process reads; the system says so unless given.
        idle_limit_s: a worker ends itself if it receives nothing for this long while messages wait.
        loop_limit_s: a worker also ends itself if its event loop has not answered for this long. No request,
            busy machine or loading of certificates takes that long.
    """

    broker_url: str
    message_key: bytes = field(repr=False)
    name: str
    grace_s: float = 20.0
    local_address: str | None = None
    ready_file: Path | None = None
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    sources: SpecSources = NO_SOURCES
    files_cache: Path = field(default_factory=find_files_cache)
    most_cache_bytes: int = 20_000_000_000
    user_code_memory: int = 0
    user_code_niceness: int = 0
    inherited_variables: tuple[str, ...] = ()
    confinement: Confinement = Confinement.ON
    kernel: str | None = None
    idle_limit_s: float = 30.0
    loop_limit_s: float = 30.0

    @property
    def printed(self) -> Path:
        """The file that has what the user code of the latest run printed."""
        return self.files_cache / "printed" / f"{self.name}.txt"

    @property
    def records(self) -> Path:
        """The folder of the flight records of workers; it outlives their processes, as the cache does."""
        return self.files_cache / "flight"
