"""The engine of user code: an index is an iteration, carried out by the host, a child process.

The host asks for iterations as its users become free, gets them in batches, and reports how each ended. A
host that ends or does not answer is replaced. Its iterations are given back: untouched if they had not begun,
otherwise like any request that was cut off.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from oku_core.messaging.process_ends import HostEndReason
from oku_core.process.supervision import Health, Supervisor, cancel_tasks
from oku_core.spec.files import list_files
from oku_core.spec.spec import Spec, encode_spec
from oku_core.user_code.messages import (
    MOST_AHEAD,
    Cut,
    Deserted,
    Hand,
    Ready,
    Refused,
    Report,
    SetUsers,
    Start,
    StopHost,
)
from oku_workers.engines.contract.engine_protocol import STUCK_S, EngineContext, EngineError, HostLoad
from oku_workers.engines.contract.user_code_host import ProcessEnd
from oku_workers.engines.user_code.code_folder import build_code_folder, fill_code_folder, remove_code_folder
from oku_workers.engines.user_code.handouts import Handed, Handouts
from oku_workers.engines.user_code.host_process import HostProcess
from oku_workers.engines.user_code.report_reader import ReportReader, give_back_or_end
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed_protocol import FeedProtocol

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)

LOADING_S = 60.0
"""The longest time to load user code."""
SILENT_S = 30.0
"""A host that sends nothing for this time is killed: its user code blocks it."""
_SWEEP_S = 0.25
_MOST_ENDS = 3
"""User code is given up after this many hosts in a row that completed no iteration."""
_RESTART_PAUSE_S = 0.2
_ENDING_S, _EXITING_S = 5.0, 0.5
"""How long a host may take to exit: after `StopHost`, and after it has closed its socket by itself."""
FAREWELL_S = 3.0
"""How long users may take to stop."""
_MOST_AT_ONCE = 1000
"""Most iterations in one message."""


class _LoadingEndedError(EngineError):
    """A host has ended while it loaded the user code."""


class UserCodeEngine:
    """An `EngineProtocol`; belongs to the thread of the event loop. A host may be silent for `silent_s`."""

    def __init__(
        self,
        spec: Spec,
        feed: FeedProtocol,
        supervisor: Supervisor,
        context: EngineContext,
        silent_s: float = SILENT_S,
    ) -> None:
        self._spec = spec
        self._feed = feed
        self._supervisor = supervisor
        self._context = context
        self._silent_s = silent_s
        self.window = 0
        self.fault = ""
        self.has_farewell = False
        self._leaving: Execution | None = None
        """What the requests of users that stop are counted in."""
        self._are_gone = asyncio.Event()
        self._handouts = Handouts()
        self._most_users = 0
        """The largest window so far."""
        self._users = self._changes = 0
        """The most users that the host may have, and how often it was sent another number of them."""
        self._wanted = 0
        self._host: HostProcess | None = None
        self._reader = ReportReader(self._handouts, self)
        self._folder: Path | None = None
        self._heard_at = self._swept_at = 0.0
        self._ends = 0
        self._why_killed: ProcessEnd | None = None
        self._loaded: asyncio.Future[None] | None = None
        self.host_load = HostLoad()
        self._ended_cpu_s = self._ended_busy_s = 0.0
        """Of the hosts that have ended."""
        self._chores: list[asyncio.Task[None]] = []
        self._has_ended = asyncio.Event()
        self._is_closing = False

    @property
    def in_flight(self) -> int:
        """Iterations that have begun and have not ended; more may wait in the host.

        Some that have ended may not have been reported yet: there are never more than users.
        """
        host = self._host
        if host is None:
            return 0
        begun = sum(map(bool, map(host.slots.begun_ns, self._handouts.slots)))
        return min(begun, self._most_users)

    @property
    def keeps_window(self) -> bool:
        """Whether the host has as many users as are wanted, and surplus ones have gone."""
        return self._host is None or self._users <= self.window

    @property
    def _is_loaded(self) -> bool:
        return self._loaded is not None and self._loaded.done()

    async def open(self) -> None:
        """Load the user code.

        Raises:
            EngineError: it cannot be run.
        """
        self._folder = await asyncio.to_thread(build_code_folder, self._spec, self._context.find_file)
        try:
            await self._start_host()
        except BaseException:
            await self.close()
            raise

    def start(self) -> None:
        """Begin to take from the feed."""
        start = self._supervisor.start
        self._chores = [
            start("feed", self._follow_feed),
            start("user code", self._keep_host),
            start("silence", self._keep_sweeping),
        ]
        self._feed.attach(self)

    def set_window(self, window: int) -> None:
        """Set the number of users; surplus users stop after their iterations."""
        self.window = window
        self._most_users = max(self._most_users, window)
        if self._host is not None and self._leaving is None and not self._are_gone.is_set():
            self._wanted = self.host_load.idle_users = 0  # the host asks anew
            self._set_users(self._host, window)

    def _set_users(self, host: HostProcess, users: int) -> None:
        self._users = max(self._users, users)
        self._changes += 1
        host.send(SetUsers(users))

    async def run_farewell(self, execution: Execution) -> None:
        """Stop all users; new ones start with the next iterations."""
        host = self._host
        if host is None or self.fault or self._is_closing or self._are_gone.is_set():
            return
        self._leaving, self._wanted, self.host_load.idle_users = execution, 0, 0
        self._set_users(host, 0)
        try:
            async with asyncio.timeout(FAREWELL_S):
                await self._are_gone.wait()
        except TimeoutError:
            _log.warning("user code: users have not stopped within %g s", FAREWELL_S)
        finally:
            self._leaving = None
            self._are_gone.set()
            self._fill()

    def has_room(self) -> bool:
        """Whether the host wants another iteration now."""
        return self._wanted > 0

    def take_due(self) -> bool:
        """Hand out the iterations that are due."""
        self._fill()
        return True

    def flush_counts(self) -> None:
        """Return at once: iterations are counted as they are reported."""

    def group_in_flight(self) -> Mapping[Execution, list[int]]:
        """The coordinates that were handed out and have not ended, for each execution that has any."""
        groups: dict[Execution, list[int]] = {}
        for handed in self._handouts:
            groups.setdefault(handed.tally.execution, []).append(handed.coordinate)
        return groups

    def cancel(self, execution: Execution) -> None:
        """Have the host cut off the iterations of an execution; it reports each that has ended."""
        slots = self._handouts.list_slots(execution)
        if not slots or self._host is None:
            return
        now = asyncio.get_running_loop().time()
        for slot in slots:
            if (handed := self._handouts.find(slot)) is not None:
                handed.cancel_at = min(handed.cancel_at, now)
        self._host.send(Cut(slots))

    def sweep(self) -> None:
        """Kill a host that is silent, or that does not cut off an iteration."""
        now = asyncio.get_running_loop().time()
        if self._swept_at and now - self._swept_at > 1.0:
            self._heard_at = now  # we were late ourselves
        self._swept_at = now
        host = self._host
        if host is None:
            return
        if host.has_ended():
            self._has_ended.set()
        elif self._is_loaded and now - self._heard_at > self._silent_s:
            self._kill(host, f"it has blocked its process for {self._silent_s:g} s")
        elif any(now - handed.cancel_at > STUCK_S for handed in self._handouts):
            self._kill(host, f"an iteration that was cut off has not ended within {STUCK_S:g} s")

    async def close(self) -> None:
        """Stop, end the host, and give back its iterations."""
        self._is_closing = True
        await cancel_tasks(self._chores)
        if self._host is not None:
            self._host.send(StopHost())
        await self._end_host()
        if self._folder is not None:
            folder, self._folder = self._folder, None
            await asyncio.to_thread(remove_code_folder, folder)

    async def _follow_feed(self, health: Health) -> None:
        while True:
            self._fill()
            health.record_success()
            await self._feed.wait()

    def _fill(self) -> None:
        """Hand out as many iterations as the host has asked for and the feed has."""
        feed, handouts, host, load = self._feed, self._handouts, self._host, self.host_load
        if host is None or self._is_closing:
            return
        if self._are_gone.is_set() and self._leaving is None and feed.find_first() is not None:
            self._are_gone.clear()
            self._set_users(host, self.window)
        numbers: list[int] = []
        while self._wanted > 0 and handouts.has_room and feed.current is not None:
            tally, coordinate, index, due_ns = feed.pop()
            slot = handouts.put(Handed(tally, coordinate, due_ns))
            host.slots.clear(slot)
            numbers += (slot, index, due_ns)
            self._wanted -= 1
            load.idle_users = min(max(0, load.idle_users - 1), self._wanted)
            if len(numbers) >= _MOST_AT_ONCE * 3:
                host.send(Hand(numbers))
                numbers = []
        if numbers:
            host.send(Hand(numbers))

    def on_end(self) -> None:
        """The host has ended, or closed its socket."""
        self._has_ended.set()

    def on_message(self, message: object) -> None:
        """Handle a message of the host."""
        self._heard_at = asyncio.get_running_loop().time()
        if isinstance(message, Report):
            self._reader.read(message)
            self._record_load(message)
            if message.changes == self._changes:
                self._users = message.users
            if self._host is not None:  # one that is ending gets no more iterations
                self._wanted = min(self._wanted + max(0, message.wanted), self.window + MOST_AHEAD)
                self.host_load.idle_users = min(max(0, message.idle), self._wanted, self.window)
                self._fill()
        elif self._loaded is not None and not self._loaded.done():
            if isinstance(message, Refused):
                self._loaded.set_exception(EngineError(message.reason))
            elif isinstance(message, Ready):
                self.has_farewell = message.has_farewell
                self._loaded.set_result(None)
        elif isinstance(message, Refused):
            self._break(message.reason)
        elif isinstance(message, Deserted) and self._leaving is not None:
            self._are_gone.set()

    def _record_load(self, report: Report) -> None:
        load = self.host_load
        # They never fall: user code may report for its host, as a process that it has forked does.
        load.cpu_s = max(load.cpu_s, self._ended_cpu_s + report.cpu_us / 1e6)
        load.busy_s = max(load.busy_s, self._ended_busy_s + report.busy_us / 1e6)
        load.late_s = max(load.late_s, report.late_us / 1e6)

    async def _refill_folder(self) -> None:
        """Restore the files that a new host needs, if any were removed; `EngineError` if it cannot."""
        assert self._folder is not None
        await self._context.fetch_files()
        await asyncio.to_thread(fill_code_folder, self._folder, self._spec, self._context.find_file)

    async def _start_host(self) -> None:
        """Start a host that loads the user code; `EngineError` if none can.

        A host that dies while it loads may have been killed from outside, so it is retried.
        """
        for left in reversed(range(_MOST_ENDS)):
            try:
                await self._try_host()
            except _LoadingEndedError:
                if not left:
                    raise
                await asyncio.sleep(_RESTART_PAUSE_S)
            else:
                return

    async def _try_host(self) -> None:
        """Start a host, and wait until it has loaded the user code; `EngineError` if it does not."""
        assert self._folder is not None
        self._has_ended.clear()
        self._heard_at = asyncio.get_running_loop().time()
        self._loaded = asyncio.get_running_loop().create_future()
        self._reader = ReportReader(self._handouts, self)
        self._why_killed = None
        self._users, self._changes = self.window, 0
        spec, context = self._spec, self._context
        host = self._host = HostProcess(
            spec.chosen_engine,
            self._folder,
            context.isolation,
            self,
            partial(context.output.record, context.run),
        )
        paths = {file.digest: os.fsencode(context.find_file(file.digest)) for file in list_files(spec)}
        host.send(
            Start(
                spec=encode_spec(spec),
                folder=os.fsencode(self._folder),
                users=self.window,
                is_ahead=not self._feed.is_paced,
                paths=paths,
                setup_data=context.setup_data,
                local_address=context.local_address,
                secrets=context.secrets,
                is_confined=context.isolation.is_confined,
            )
        )
        ended = asyncio.ensure_future(self._has_ended.wait())
        try:
            waiting: list[asyncio.Future[Any]] = [self._loaded, ended]
            await asyncio.wait(waiting, timeout=LOADING_S, return_when=asyncio.FIRST_COMPLETED)
            if not self._loaded.done():
                if ended.done():
                    how = await self._end_host(is_unexpected=True)
                    raise _LoadingEndedError(
                        f"the process of the scenario ended while it was loaded: {how.text}"
                    )
                raise EngineError(f"the scenario was not loaded within {LOADING_S:g} s")
            self._loaded.result()
        except BaseException:
            await self._end_host()
            raise
        finally:
            ended.cancel()

    async def _keep_host(self, health: Health) -> None:
        """Replace a host that ends."""
        while True:
            await self._has_ended.wait()
            self._has_ended.clear()
            if self._host is None:
                continue
            is_new = self._reader.ended == 0
            how = await self._end_host(is_unexpected=True)
            if self.fault:
                return
            _log.error("user code: %s; what it had in hand is given back", how.text)
            self._ends = self._ends + 1 if is_new else 1
            if self._ends >= _MOST_ENDS:
                self._break(f"user code is not tried again: {how.text}, {self._ends} times in a row")
                return
            await asyncio.sleep(_RESTART_PAUSE_S)
            try:
                await self._refill_folder()
                await self._start_host()
            except EngineError as error:
                self._break(str(error))
                return
            health.record_success()

    def _break(self, fault: str) -> None:
        """Take nothing more: current leases are given back, and new ones refused."""
        self.fault = fault
        while (execution := self._feed.find_first()) is not None:
            self._feed.shorten(execution, 0)

    def _kill(self, host: HostProcess, why: str) -> None:
        if self._why_killed is None:
            if host.is_at_memory_limit:
                text = f"{why}, and is at its memory limit"
                self._why_killed = ProcessEnd(HostEndReason.MEMORY_LIMIT, text)
            else:
                self._why_killed = ProcessEnd(HostEndReason.NO_ANSWER, why)
            host.kill()

    async def _end_host(self, *, is_unexpected: bool = False) -> ProcessEnd:
        """Wait for the host to end, and account for its iterations; returns how it ended.

        An unexpected end is reported, unless the host itself has given the reason.
        """
        host, self._host = self._host, None
        self._wanted, self.host_load.idle_users = 0, self.window  # until there is another one
        if self._leaving is not None:
            self._are_gone.set()
        how = ProcessEnd(HostEndReason.EXITED, "it had ended before")
        if host is None:
            return how
        try:
            # Its last messages count.
            how = await host.wait(_ENDING_S if self._is_closing else _EXITING_S)
            how = self._why_killed or how
            return how
        finally:
            in_hand = self._handouts.pop_all()
            if is_unexpected and not self.fault:
                self._context.host_ends.record(self._context.run, how, len(in_hand))
            for slot, handed in in_hand:
                give_back_or_end(handed, host.slots.begun_ns(slot), self._spec.iteration_timeout_s)
            self._ended_cpu_s, self._ended_busy_s = self.host_load.cpu_s, self.host_load.busy_s
            host.close()

    async def _keep_sweeping(self, health: Health) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.sweep()
            health.record_success()

    def find_execution(self) -> Execution | None:
        """An execution that is under way."""
        return self._leaving or next((handed.tally.execution for handed in self._handouts), None)
