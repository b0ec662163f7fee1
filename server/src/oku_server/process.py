"""The lifecycle of a server: `serve` opens the port and the counts, then answers until SIGTERM or SIGINT.

A single process runs its event loop right here; several are children of this one (`supervisor`). What they
share (sockets, blocks of counts) is made before they are forked.
"""

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import uvloop

from oku_core.process.listener import BACKLOG, adopt_sockets, format_address, open_sockets
from oku_core.process.private_files import remove_ready_file, write_ready_file
from oku_core.process.resources import raise_open_files
from oku_server.behaviour.planner import Planner
from oku_server.behaviour.timing_wheel import Timers, TimingWheel
from oku_server.child_supervisor import ChildSupervisor
from oku_server.counts.count_store import CountStore, FileCountStore, MemoryCountStore
from oku_server.counts.count_table import CountTable
from oku_server.http.admin import Description, RecentSizes
from oku_server.http.request_timeouts import RequestTimeouts
from oku_server.http.server_connection import ServerConnection
from oku_server.http.service import DelayService
from oku_server.settings import ServerSettings

GC_THRESHOLD = 10_000
"""Requests leave no reference cycles behind. While thousands of them wait, the default of 700 would make the
collector walk over them all the time, which costs a few percent of the processor."""

_log = logging.getLogger(__name__)


def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT, which drops the requests in flight.

    Raises:
        UserError: the port is in use, or the host, the counts directory or the ready file cannot be used.
    """
    if settings.ready_file is not None:
        remove_ready_file(settings.ready_file)
    raise_open_files()
    store = _open_store(settings)
    sockets = _open_sockets(settings)
    announcement = _Announcement(settings, format_address(sockets[0]))
    try:
        if settings.processes == 1:
            _run(settings, sockets[0], store, 0, announcement)
        else:
            with ChildSupervisor(settings.processes, _Children(settings, sockets, store)) as supervisor:
                announcement.publish()
                supervisor.watch()
    finally:
        for listening in sockets:
            listening.close()


@dataclass(frozen=True)
class _Announcement:
    """Announces to people and programs where the server listens."""

    settings: ServerSettings
    address: str

    def publish(self) -> None:
        """Log the address, and write the ready file."""
        count = self.settings.processes
        processes = "1 process" if count == 1 else f"{count} processes"
        _log.info("listening on http://%s, %s, delay %s", self.address, processes, self.settings.delay)
        if self.settings.ready_file is not None:
            write_ready_file(self.settings.ready_file, self.address)


@dataclass(frozen=True)
class _Children:
    """Processes that share the counts, each with a socket of its own."""

    settings: ServerSettings
    sockets: Sequence[socket.socket]
    store: CountStore

    def run(self, number: int) -> None:
        """Run one of them."""
        for other in (*self.sockets[:number], *self.sockets[number + 1 :]):
            other.close()
        _run(self.settings, self.sockets[number], self.store, number)


def _run(
    settings: ServerSettings,
    listening: socket.socket,
    store: CountStore,
    number: int,
    announcement: _Announcement | None = None,
) -> None:
    # The objects that exist by now stay, so the garbage collector need not look at them again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    uvloop.run(_answer(settings, listening, store, number, announcement))


async def _answer(
    settings: ServerSettings,
    listening: socket.socket,
    store: CountStore,
    number: int,
    announcement: _Announcement | None,
) -> None:
    loop = asyncio.get_running_loop()
    service = _build_service(settings, store, number, _LoopTimers(loop))
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    server = await loop.create_server(lambda: ServerConnection(service), sock=listening, backlog=BACKLOG)
    if announcement is not None:
        announcement.publish()
    await stop.wait()
    server.close()


def _build_service(settings: ServerSettings, store: CountStore, number: int, timers: Timers) -> DelayService:
    sizes = RecentSizes(settings.processes)

    def describe(run: str, *, announces: bool) -> Description:
        if announces:
            store.registry.announce(run, time.time())
        total = store.sum_up(run)
        return {
            "run": run,
            "served": total.served,
            "store": total.id,
            "kept": total.is_kept,
            "forgotten": total.forgotten,
            "processes": sizes.list(),
        }

    return DelayService(
        Planner(settings.delay, settings.faults, settings.seed, Random()),  # noqa: S311  # load, no secret
        settings.body,
        CountTable(store.blocks[number], store.registry),
        TimingWheel(timers),
        RequestTimeouts(timers),
        describe,
    )


class _LoopTimers:
    """The timers of an event loop, whose own clock has milliseconds alone."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_later(self, delay_s: float, callback: Callable[[], None], /) -> asyncio.TimerHandle:
        """Call a function after this many seconds."""
        return self._loop.call_later(delay_s, callback)


def _open_sockets(settings: ServerSettings) -> list[socket.socket]:
    if settings.listen_fds:
        return adopt_sockets(settings.listen_fds)
    return open_sockets(settings.host, settings.port, settings.processes)


def _open_store(settings: ServerSettings) -> CountStore:
    if settings.counts_dir is None:
        return MemoryCountStore(settings.processes)
    return FileCountStore(settings.counts_dir, settings.processes, is_trusted=settings.trusts_counts_dir)
