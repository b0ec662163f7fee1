"""Starts the local stack as child processes, and restarts those that die."""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from oku_cli.backends.coordinator_ref import Endpoint
from oku_cli.backends.data_dir import DataDir, RunningStack
from oku_cli.local.stack_plan import StackChildren, StackPlan, StackSockets, build_listening_url
from oku_cli.local.stack_socket import StackSocket
from oku_cli.process.child import Child, describe_death
from oku_core.process.listener import open_sockets
from oku_core.process.supervision import Health, Supervisor, cancel_tasks

if TYPE_CHECKING:
    import aiohttp

_T = TypeVar("_T")

_POLL_S = 0.1
_READY_TIMEOUT_S = 30.0
_HEALTHY_S = 3.0
_MAX_QUICK_ENDS = 5
"""A child that exits this often right after its start is given up."""
_MAX_QUICK_KILLS = 25
"""A child that is killed from outside gets more chances."""
_END_TIMEOUT_S = 3.0
_END_POLL_S = 0.02
_HOST = "127.0.0.1"


class StackError(Exception):
    """Is raised when the stack cannot be started or kept alive."""


class LocalStack:
    """Runs a local stack for one run in a folder that the caller holds, and keeps it alive until it is ended.

    Args:
        log: takes a line for people when a child has died; it may be replaced.
    """

    def __init__(
        self, data_dir: DataDir, plan: StackPlan, log: Callable[[str], None] = lambda _: None
    ) -> None:
        self.data_dir = data_dir
        self.plan = plan
        self.log = log
        self._quick_deaths: dict[str, int] = {}
        self._watching: asyncio.Task[None] | None = None
        self._obstacle = ""
        """Why a process is not ready, in its own words."""
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises `StackError` when a child cannot be kept alive."""
        # The sockets listen before any child starts: another user of this machine could take a port that is
        # only chosen, and would be sent the token. They stay open here, so that a restarted child gets the
        # same ones, and clients that connect meanwhile wait for it.
        self._sockets = StackSockets(
            api=open_sockets(_HOST, 0, 1),
            files=open_sockets(_HOST, 0, 1),
            servers=open_sockets(_HOST, 0, plan.servers) if plan.servers else [],
            workers=None if plan.broker_url else StackSocket(data_dir.absolute),
        )
        self.endpoint = Endpoint(build_listening_url(self._sockets.api), secrets.token_urlsafe(24))
        self._builder = StackChildren(plan, data_dir, self._sockets, self.endpoint.token)
        self.children = list(self._builder.build_all())
        """The children in the order of their start: coordinator, delay servers, workers."""
        self._workers = plan.workers

    def launch(self) -> None:
        """Start every child, and wait for none: their imports take long. A failure is found in `start`."""
        for child in self.children:
            try:
                child.start()
            except OSError as error:
                reason = f"{error.filename}: {error.strerror}"
                self.failure.set_exception(StackError(f"{child.name} cannot be started: {reason}"))
                return
        try:
            self._write()
        except OSError as error:
            self.failure.set_exception(StackError(f"{self.data_dir.stack_file}: {error.strerror}"))
            return
        # Supervised, because a watch that ended by an error would leave dead children dead.
        self._watching = Supervisor().start("children", self._watch)

    def grow(self, workers: int) -> None:
        """Start the workers that are missing to this number."""
        while self._workers < workers:
            child = self._builder.build_worker(self._workers + 1)
            child.start()
            self._workers += 1
            self.children.append(child)
            self._write()

    async def start(self) -> None:
        """Wait until the stack is ready, launched if it was not; raise `StackError` if that fails."""
        if self._watching is None and not self.failure.done():
            self.launch()
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                await self.guard(self._wait_until_ready())
        except TimeoutError:
            why = f" ({self._obstacle})" if self._obstacle else ""
            logs = f"{self.data_dir.path}/logs"
            raise StackError(
                f"the local stack is not ready after {_READY_TIMEOUT_S:.0f} s{why}, see {logs}"
            ) from None

    async def guard(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do `work`, but raise `StackError` as soon as a child cannot be kept alive."""
        working = asyncio.create_task(work)
        try:
            waited: set[asyncio.Future[Any]] = {working, self.failure}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if self.failure.done():
                self.failure.result()
            return await working
        finally:
            await cancel_tasks([working])

    async def end(self, *, at_once: bool = False, is_busy: bool = False) -> None:
        """End every child: ask it first, unless `at_once`, and kill it if it takes too long.

        Args:
            at_once: whether to kill all of them.
            is_busy: whether workers may have leases, whose ends the coordinator must confirm.
        """
        if self._watching is not None:
            self._watching.cancel()
        self.failure.cancel()
        self.data_dir.remove_stack()
        if not at_once:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_TIMEOUT_S):
                    await self._ask_to_end(is_busy=is_busy)
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait(_END_TIMEOUT_S)
        self._sockets.close()

    async def _ask_to_end(self, *, is_busy: bool) -> None:
        """Ask all at the same time: a worker without leases leaves once its coordinator has hung up.

        With leases or with a broker, it waits for an answer of the coordinator, which ends after it.
        """
        coordinator, *others = self.children
        for group in [others, [coordinator]] if is_busy or self.plan.broker_url else [self.children]:
            for child in group:
                child.terminate()
            await asyncio.gather(*(wait_for_end(child) for child in group))

    async def _watch(self, health: Health) -> None:
        while True:
            health.record_success()
            await asyncio.sleep(_POLL_S)
            for child in self.children:
                child.bound_log()
                if (code := child.find_death()) is not None:
                    self._revive(child, code)

    def _revive(self, child: Child, code: int) -> None:
        lived_s = time.monotonic() - child.started_at
        deaths = self._quick_deaths.get(child.name, 0) + 1 if lived_s < _HEALTHY_S else 0
        self._quick_deaths[child.name] = deaths
        if deaths >= (_MAX_QUICK_KILLS if code < 0 else _MAX_QUICK_ENDS):
            if not self.failure.done():
                last = child.read_last_line()
                self.failure.set_exception(StackError(f"{child.name} ends as soon as it is started: {last}"))
            return
        self.log(f"{child.name} died ({describe_death(code)}), started again")
        child.start()
        self._write()

    def _write(self) -> None:
        pids = {child.name: child.pid for child in self.children}
        shape = self.plan.describe(self._builder.folder_key)
        self.data_dir.write_stack(
            RunningStack(self.endpoint.url, self.endpoint.token, os.getpid(), pids, shape)
        )

    async def _wait_until_ready(self) -> None:
        import aiohttp  # noqa: PLC0415  # it takes long, as do the imports of the children meanwhile

        probes = [f"{self.endpoint.url}/readyz"]
        if self._sockets.servers:
            probes.append(f"{build_listening_url(self._sockets.servers)}/-/healthz")
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
            for probe in probes:
                while not await self._is_ready(session, probe):  # noqa: ASYNC110  # probes are polled
                    await asyncio.sleep(0.02)

    async def _is_ready(self, session: "aiohttp.ClientSession", probe: str) -> bool:
        from aiohttp import ClientError  # noqa: PLC0415  # it is loaded by now

        try:
            async with session.get(probe) as response:
                self._obstacle = "" if response.ok else (await response.text()).strip()
                return response.status == HTTPStatus.OK
        except (ClientError, TimeoutError):
            return False


async def wait_for_end(child: Child) -> None:
    """Wait until a process has ended: by an event where the kernel has one, else by polls."""
    if not child.is_alive:
        return
    if not hasattr(os, "pidfd_open"):
        while child.is_alive:  # noqa: ASYNC110  # processes end without an event
            await asyncio.sleep(_END_POLL_S)
        return
    ended = asyncio.Event()
    loop, descriptor = asyncio.get_running_loop(), os.pidfd_open(child.pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
