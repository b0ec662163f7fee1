"""The lifecycle of a server: `serve` opens the port and the counts, then answers until SIGTERM or SIGINT.

A single process runs its event loop right here; several are children of this one (`supervisor`). What they
share (sockets, blocks of counts) is made before they are forked.
"""

import asyncio
import gc
import logging
import random
import signal
import socket
import time
from collections.abc import Callable

import uvloop

from oku_core.process.listener import BACKLOG, adopt_sockets, format_address, open_sockets
from oku_core.process.private_files import remove_ready_file, write_ready_file
from oku_core.process.resources import raise_open_files
from oku_server.behaviour.plan import Planner
from oku_server.behaviour.timing_wheel import TimingWheel
from oku_server.counts.count_store import CountStore, FileStore, MemoryStore
from oku_server.counts.count_table import CountTable
from oku_server.http.admin import Description
from oku_server.http.connection import Connection
from oku_server.http.request_timeouts import RequestTimeouts
from oku_server.http.service import Service
from oku_server.process_sizes import RecentSizes
from oku_server.settings import ServerSettings
from oku_server.supervisor import Supervisor

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

    def announce() -> None:
        _announce(settings, format_address(sockets[0]))

    def run_child(number: int) -> None:
        for other in sockets[:number] + sockets[number + 1 :]:
            other.close()
        _run(settings, sockets[number], store, number)

    try:
        if settings.processes == 1:
            _run(settings, sockets[0], store, 0, announce)
        else:
            Supervisor(settings.processes, run_child).run(announce)
    finally:
        for listening in sockets:
            listening.close()


def _run(
    settings: ServerSettings,
    listening: socket.socket,
    store: CountStore,
    number: int,
    on_started: Callable[[], None] = lambda: None,
) -> None:
    planner = Planner(settings.delay, settings.faults, settings.seed, random.random)
    counts = CountTable(store.blocks[number], store.registry)
    sizes = RecentSizes(settings.processes, time.monotonic)

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

    def build_service(loop: asyncio.AbstractEventLoop) -> Service:
        wheel = TimingWheel(loop.call_later, time.monotonic)
        request_timeouts = RequestTimeouts(loop.call_later, time.monotonic)
        return Service(planner, settings.body, counts, wheel, request_timeouts, describe)

    # The objects that exist by now stay, so the garbage collector need not look at them again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    uvloop.run(_answer(build_service, listening, on_started))


async def _answer(
    build_service: Callable[[asyncio.AbstractEventLoop], Service],
    listening: socket.socket,
    on_started: Callable[[], None],
) -> None:
    loop = asyncio.get_running_loop()
    service = build_service(loop)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(lambda: Connection(service), sock=listening, backlog=BACKLOG)
    on_started()
    await stop.wait()
    server.close()


def _open_sockets(settings: ServerSettings) -> list[socket.socket]:
    if settings.listen_fds:
        return adopt_sockets(settings.listen_fds)
    return open_sockets(settings.host, settings.port, settings.processes)


def _open_store(settings: ServerSettings) -> CountStore:
    if settings.counts_dir is None:
        return MemoryStore(settings.processes)
    return FileStore(settings.counts_dir, settings.processes, is_trusted=settings.trusts_counts_dir)


def _announce(settings: ServerSettings, address: str) -> None:
    processes = "1 process" if settings.processes == 1 else f"{settings.processes} processes"
    _log.info("listening on http://%s, %s, delay %s", address, processes, settings.delay)
    if settings.ready_file is not None:
        write_ready_file(settings.ready_file, address)
