"""The host of Python scenarios: each user is a task that calls the coroutine once for each iteration."""

import asyncio
import gc
import logging
import os
import socket
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns
from typing import Any

import uvloop

from oku.host_session import HostSession, Iteration
from oku.http.http import Http
from oku.http.scope import Scope, scope_at_work
from oku.sandbox.file_confinement import prepare_host
from oku.sandbox.user_module import LoadError
from oku.scenario_host.garbage import GarbageWatch, ProcessMemory
from oku.scenario_host.hook_call import serve_call
from oku.scenario_host.http_factory import build_client, open_rows
from oku.scenario_host.iteration_end import End, judge_exception, judge_return
from oku.scenario_host.scenario import Scenario, load_scenario
from oku.scenario_host.unawaited import explain_unawaited, watch_coroutines
from oku_core.accounting.outcome import EXCEPTION, TIMEOUT
from oku_core.data.data_format import DataError
from oku_core.data.row_reader import RowReader
from oku_core.http_client.cookies import CookieJar
from oku_core.json_reader import decode_json
from oku_core.process.resources import measure_busy_s
from oku_core.spec.spec import Spec, decode_spec
from oku_core.user_code.messages import Call, Cut, Ready, Refused, SetUsers, Start, StopHost, frame
from oku_core.user_code.slots import Slots

_log = logging.getLogger(__name__)

_REPORT_S = 0.01
"""How long a report waits for more results."""
_POLL_S, _ALIVE_POLLS = 0.1, 5
"""How often the lag of the event loop is measured, and after how many times it reports without news."""
_OVERDUE_NS = 1_000_000_000
"""Where user code blocks the event loop, users report themselves after this time: the host is alive."""
STUCK_S = 5.0
"""An iteration that has not ended this long after its limit never will: its user begins anew."""
_MOST_STUCK = 20
"""How many stuck iterations are tolerated, or as many as there are users: they make load, and hold memory."""
_NO_ROW: Mapping[str, str] = {}


class StuckError(Exception):
    """Too many iterations do not let themselves be cancelled."""


@dataclass(eq=False)
class _User:
    """One user.

    Attributes:
        number: its place among all, from 0.
        cookies: those that stay from one of its iterations to the next.
        task: carries out its iterations.
        iteration: the one that is under way; None between two.
        scope: of that iteration.
        waiting: done when there may be an iteration for it; None while it has one.
    """

    number: int
    cookies: CookieJar = field(default_factory=CookieJar)
    task: asyncio.Task[None] | None = None
    iteration: Iteration | None = None
    scope: Scope | None = None
    waiting: asyncio.Future[None] | None = None


class PythonHost:
    """Carries out iterations of a coroutine, in the running event loop.

    Args:
        start: the first message of the worker.
        slots: shared with it.
        scenario: has the function.
        rows: the rows of the run; None without data.
        stuck_s: how long after its limit an iteration is given up that does not end.

    Attributes:
        main: the file of the scenario.
    """

    def __init__(
        self,
        start: Start,
        slots: Slots,
        scenario: Scenario,
        rows: RowReader | None = None,
        stuck_s: float = STUCK_S,
    ) -> None:
        self._spec: Spec = decode_spec(start.spec)
        self._folder = Path(os.fsdecode(start.folder))
        self.main = self._folder / scenario.place
        self._scenario = scenario
        self._setup_data: object = decode_json(start.setup_data)
        self._rows = rows
        self._columns = self._spec.columns
        self._client = build_client(start, self._spec, rows)
        self._session = HostSession(slots, start.users, is_ahead=start.is_ahead)
        limit_s = self._spec.iteration_timeout_s
        self._limit_ns = int((limit_s or 0) * 1e9)
        self._late = End(TIMEOUT, f"no end within {limit_s or 0:g}s")
        self._stuck_ns = None if limit_s is None else int((limit_s + stuck_s) * 1e9)
        self._users: dict[int, _User] = {}
        self._stuck: set[asyncio.Task[None]] = set()
        self._idle: deque[_User] = deque()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._report: asyncio.Handle | None = None
        self._reported_at_ns = monotonic_ns()
        self._over = self._loop.create_future()

    async def run(self, connection: socket.socket) -> None:
        """Carry out what the worker hands out, until it says that it is over, or is gone."""
        connection.setblocking(False)  # noqa: FBT003  # its only argument
        self._transport, _ = await self._loop.create_unix_connection(
            lambda: _WorkerConnection(self), sock=connection
        )
        self._transport.set_write_buffer_limits(0)  # reports are sent at once, not after all users
        self._transport.write(frame(Ready()))
        self._set_users()
        polling = self._loop.create_task(self._keep_polling())
        try:
            await self._over
        finally:
            self._close(polling)

    def _close(self, polling: asyncio.Task[None]) -> None:
        polling.cancel()
        for user in self._users.values():
            if user.task is not None:
                user.task.cancel()
        self._transport.close()
        self._client.close()

    def receive(self, data: bytes) -> None:
        """Act on what the worker has sent."""
        for message in self._session.receive(data):
            if isinstance(message, SetUsers):
                self._set_users()
            elif isinstance(message, Cut):
                self._cut(set(message.slots))
            elif isinstance(message, StopHost):
                self.end()
        while self._session.waiting > 0 and self._idle:
            user = self._idle.popleft()
            if user.waiting is not None and not user.waiting.done():
                user.waiting.set_result(None)
                user.iteration = self._session.start_next()
        self._report_soon()

    def end(self) -> None:
        """End `run`: the worker has said so, or is gone."""
        if not self._over.done():
            self._over.set_result(None)

    def _fail(self, error: BaseException) -> None:
        """End this process: what it knows of its iterations may be wrong, and the worker gives them back."""
        if not self._over.done():
            _log.error("the process of the user code ends: %s", str(error) or type(error).__name__)
            self._over.set_exception(error)

    def _set_users(self) -> None:
        """Have as many users as are wanted; those beyond end with their iterations."""
        for number in range(self._session.users):
            if number not in self._users:
                self._add_user(number)
        for user in list(self._idle):
            if user.number >= self._session.users and user.waiting is not None:
                self._idle.remove(user)
                user.waiting.set_result(None)
        self._report_soon()

    def _add_user(self, number: int) -> None:
        user = self._users[number] = _User(number)
        user.task = self._loop.create_task(self._keep_iterating(user))
        user.task.add_done_callback(lambda _: self._end_user(user))

    def _end_user(self, user: _User) -> None:
        """The task of a user has ended: user code may have cancelled it. One that is wanted begins anew."""
        if self._users.get(user.number) is not user:
            return
        del self._users[user.number]
        if user in self._idle:
            self._idle.remove(user)
        if user.task is not None and not user.task.cancelled() and (error := user.task.exception()):
            self._fail(error)
            return
        if user.iteration is not None:
            self._session.end(user.iteration, EXCEPTION, "the task of its user was cancelled")
        if user.number < self._session.users and not self._over.done():
            self._add_user(user.number)

    def _cut(self, slots: set[int]) -> None:
        for user in list(self._users.values()):
            if user.iteration is None or user.iteration.slot not in slots or user.task is None:
                continue
            if user.scope is None:  # its task has not woken up for it yet
                self._session.drop(user.iteration)
                user.iteration = None
            else:
                user.scope.is_cut = True
                user.task.cancel()
        self._report_soon()

    async def _keep_iterating(self, user: _User) -> None:
        """Carry out one iteration after the other."""
        session, users = self._session, self._users
        while user.number < session.users and users.get(user.number) is user and not self._over.done():
            user.iteration = session.start_next()
            if user.iteration is None:
                await self._wait(user)
            if user.iteration is not None:
                await self._iterate(user, user.iteration)
                user.iteration = user.scope = None

    async def _wait(self, user: _User) -> None:
        """Wait until there is an iteration for a user, or it is not wanted any more."""
        user.waiting = self._loop.create_future()
        self._idle.append(user)
        if self._session.wants_more(len(self._idle)):
            self._report_now()
        await user.waiting
        user.waiting = None

    async def _iterate(self, user: _User, iteration: Iteration) -> None:
        """Carry out an iteration, and record its end."""
        scope = user.scope = Scope(self._session, iteration)
        scope_at_work.set(scope)
        self._report_overdue()
        limit_s, limit = self._spec.iteration_timeout_s, None
        try:
            arguments = self._build_arguments(user, scope, iteration.index)
            if limit_s is None:
                await self._scenario.function(**arguments)
            else:
                async with asyncio.timeout(limit_s) as limit:
                    await self._scenario.function(**arguments)
        except BaseException as error:  # noqa: BLE001  # any error of user code is counted
            end = judge_exception(error, iteration.failure, self._folder)
        else:
            if scope.calls:
                scope.fail(explain_unawaited(scope.calls, self.main))
            end = judge_return(iteration.failure)
        if scope.is_cut:
            if user.task is not None:
                user.task.uncancel()
            self._session.drop(iteration)
        else:
            self._session.end(iteration, *(self._late if self._is_late(iteration, limit) else end))
        if self._report is None:
            self._report = self._loop.call_later(_REPORT_S, self._send_report)
        self._report_overdue()

    def _is_late(self, iteration: Iteration, limit: asyncio.Timeout | None) -> bool:
        """Whether an iteration has outlasted its limit; one that blocks the event loop is not cancelled."""
        if limit is None:
            return False
        return limit.expired() or monotonic_ns() - iteration.begun_ns > self._limit_ns

    def _build_arguments(self, user: _User, scope: Scope, index: int) -> dict[str, Any]:
        """What the scenario wants of what there is; `DataError` if the row cannot be read."""
        arguments: dict[str, Any] = {}
        wanted, row = self._scenario.arguments, _NO_ROW
        if self._rows is not None:
            values = [value.decode() for value in self._rows.read(index)]
            row = dict(zip(self._columns, values, strict=False))  # values for headers come behind
        if "http" in wanted:
            arguments["http"] = Http(self._client, scope, row, user.cookies, user.number)
        if "index" in wanted:
            arguments["index"] = index
        if "row" in wanted:
            arguments["row"] = row
        if "setup_data" in wanted:
            arguments["setup_data"] = self._setup_data
        return arguments

    def _give_up_stuck(self) -> None:
        """Have another user in the place of each whose iteration goes on although it was cancelled.

        If there are many, this process ends, and they end with it; another one takes its place.
        """
        if self._stuck_ns is None:
            return
        oldest_ns = monotonic_ns() - self._stuck_ns
        for user in list(self._users.values()):
            iteration = user.iteration
            if iteration is not None and iteration.begun_ns < oldest_ns and user.task is not None:
                self._session.end(iteration, *self._late)
                user.iteration = None
                del self._users[user.number]
                self._stuck.add(user.task)
                user.task.add_done_callback(self._stuck.discard)
                user.task.cancel()
                if user.number < self._session.users:
                    self._add_user(user.number)
        if len(self._stuck) > max(_MOST_STUCK, self._session.users):
            self._send_report()
            self._fail(StuckError(f"{len(self._stuck)} iterations go on although they were cancelled"))

    def _report_soon(self) -> None:
        if self._report is None:
            self._report = self._loop.call_later(_REPORT_S, self._send_report)

    def _report_overdue(self) -> None:
        """Report at once if the event loop does not get to it: users have their turn one after the other."""
        if monotonic_ns() - self._reported_at_ns > _OVERDUE_NS:
            if self._report is not None:
                self._report.cancel()
            self._send_report()

    def _report_now(self) -> None:
        """Report with the next turn of the event loop, with everything that ends in this one."""
        if self._report is not None:
            self._report.cancel()
        self._report = self._loop.call_soon(self._send_report)

    def _send_report(self) -> None:
        self._report, self._reported_at_ns = None, monotonic_ns()
        if self._transport.is_closing():
            return
        try:
            self._transport.write(self._session.encode_report(len(self._idle), len(self._users)))
        except Exception as error:  # noqa: BLE001  # what it held is not told: there may be no memory left
            self._fail(error)

    async def _keep_polling(self) -> None:
        """Measure the lag of the event loop, give up stuck iterations, collect garbage, report regularly."""
        garbage = GarbageWatch(ProcessMemory())
        while True:
            for _ in range(_ALIVE_POLLS):
                due = self._loop.time() + _POLL_S
                await asyncio.sleep(_POLL_S)
                late_us = int((self._loop.time() - due) * 1e6)
                self._session.late_us = max(self._session.late_us, late_us)
                self._give_up_stuck()
                garbage.poll()
            self._session.busy_us = int(measure_busy_s() * 1e6)
            self._report_soon()


class _WorkerConnection(asyncio.Protocol):
    """The connection to the worker."""

    def __init__(self, host: PythonHost) -> None:
        self._host = host

    def data_received(self, data: bytes) -> None:
        """Pass on what the worker has sent."""
        self._host.receive(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the worker has gone
        """End with the worker."""
        self._host.end()


def serve(connection: socket.socket, slots_file: int) -> None:
    """Run the scenario of the worker at the other end, until it says so or is gone."""
    start = prepare_host(connection)
    if start is None:
        return
    if isinstance(start, Call):
        serve_call(connection, start)
        return
    spec = decode_spec(start.spec)
    try:
        scenario = load_scenario(spec, Path(os.fsdecode(start.folder)))
        rows = open_rows(start, spec)
    except (LoadError, DataError) as error:
        connection.sendall(frame(Refused(str(error))))
        return
    # Loaded modules stay: the collector need not visit them again.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)

    async def run() -> None:
        host = PythonHost(start, Slots(slots_file), scenario, rows)
        watch_coroutines(host.main)
        await host.run(connection)

    uvloop.run(run())
