"""The host of locustfiles: speaks with the worker, and lets users, reports and signs of life take turns."""

import os
import socket
import time
from pathlib import Path

import gevent
import gevent.socket
import locust
from gevent.event import Event

from oku.host_session import HostSession
from oku.locust_host.iterations import Iterations, ReportTimer
from oku.locust_host.loading import Loaded, load
from oku.locust_host.user_pool import UserPool
from oku.locust_host.user_state import SharedData
from oku.sandbox.user_module import LoadError
from oku_core.process.resources import measure_busy_s
from oku_core.spec.spec import decode_spec
from oku_core.user_code.messages import (
    Cut,
    Deserted,
    Ready,
    Refused,
    SetUsers,
    Start,
    StopHost,
    frame,
)
from oku_core.user_code.slots import Slots

_CHUNK_BYTES = 1 << 16
_REPORT_S = 0.01
"""How long a report waits for more results."""
_POLL_S, _ALIVE_POLLS = 0.1, 5
"""How often the lag of the hub is measured, and after how many times it reports without news."""
_CLOSING_S = 3.0
"""How long listeners and `on_stop` may take at the end; the worker waits a little longer."""


def run_host(connection: socket.socket, slots_file: int, start: Start) -> None:
    """Run the locustfile of a first message, until the worker says so or is gone."""
    cooperative = gevent.socket.socket(fileno=connection.detach())
    session = HostSession(Slots(slots_file), start.users, is_ahead=start.is_ahead)
    spec = decode_spec(start.spec)
    reports = ReportTimer()
    iterations = Iterations(
        session, Path(os.fsdecode(start.folder)), spec.iteration_timeout_s, spec.timeout_s, reports
    )
    host = LocustHost(session, cooperative, iterations, reports)
    try:
        loaded = load(start, spec, host)
    except LoadError as error:
        cooperative.sendall(frame(Refused(str(error))))
        return
    host.run(loaded)


class LocustHost:
    """Carries out iterations by Locust's users.

    Args:
        session: has the iterations.
        connection: to the worker; of gevent.
        iterations: hands them to users.
        reports: says when to report to the worker.
    """

    def __init__(
        self,
        session: HostSession,
        connection: gevent.socket.socket,
        iterations: Iterations,
        reports: ReportTimer,
    ) -> None:
        self._session = session
        self._connection = connection
        self._iterations = iterations
        self._pool: UserPool | None = None
        self._reports = reports
        self._is_over = Event()
        self._reason = ""
        self._is_deserting = False
        """Whether the worker is to hear when no user is left."""

    def install(self, data: SharedData) -> None:
        """Have Locust's tasks be iterations; first of all listeners, for later ones may raise."""
        self._iterations.install(data)
        locust.events.request.add_listener(self._iterations.on_request)
        locust.events.user_error.add_listener(self._iterations.on_user_error)

    def quit(self, reason: str) -> None:
        """User code has ended the test: nothing more can be done here."""
        self._reason = self._reason or reason
        self._is_over.set()

    def run(self, loaded: Loaded) -> None:
        """Carry out what the worker hands out, until it says that it is over, or is gone."""
        self._connection.sendall(frame(Ready(loaded.has_farewell)))
        pool = self._pool = UserPool(loaded.environment, self._session, self._iterations, self._reports)
        loaded.runner.announce_running()
        reporting = gevent.spawn(self._report)
        chores = [gevent.spawn(each) for each in (pool.run, self._poll, self._receive)]
        pool.adjust_soon()
        self._reports.report_now()
        self._is_over.wait()
        self._iterations.is_closing = True
        gevent.killall(chores[:2], block=True)
        loaded.runner.close(_CLOSING_S)
        self._reports.report_now()
        reporting.join()  # half a message would be none
        self._send(self._session.encode_report(0))
        if self._reason:
            self._send(frame(Refused(self._reason)))
        chores[-1].kill(block=False)

    def _receive(self) -> None:
        while data := self._read():
            for message in self._session.receive(data):
                if isinstance(message, SetUsers):
                    assert self._pool is not None
                    self._is_deserting = message.users == 0
                    self._pool.adjust_soon()
                    self._reports.report_now()
                elif isinstance(message, Cut):
                    self._iterations.cut(set(message.slots))
                    self._reports.report_soon()
                elif isinstance(message, StopHost):
                    self._is_over.set()
            self._iterations.wake()
        self._is_over.set()

    def _read(self) -> bytes:
        try:
            return bytes(self._connection.recv(_CHUNK_BYTES))
        except OSError:
            return b""

    def _report(self) -> None:
        """Send a report soon after something has happened."""
        while not self._is_over.is_set():
            self._reports.wait(_REPORT_S)
            # Before the report is made: later changes are for the next one.
            is_deserted = self._is_deserting and self._pool is not None and self._pool.is_empty
            users = 0 if self._pool is None else self._pool.count
            self._send(self._session.encode_report(len(self._iterations.idle), users))
            if is_deserted:
                self._is_deserting = False
                self._send(frame(Deserted()))

    def _send(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError:
            self._is_over.set()

    def _poll(self) -> None:
        """Measure the lag of the hub, and give signs of life."""
        while True:
            for _ in range(_ALIVE_POLLS):
                due = time.monotonic() + _POLL_S
                gevent.sleep(_POLL_S)
                late_us = int((time.monotonic() - due) * 1e6)
                self._session.late_us = max(self._session.late_us, late_us)
            self._session.busy_us = int(measure_busy_s() * 1e6)
            self._reports.report_soon()
