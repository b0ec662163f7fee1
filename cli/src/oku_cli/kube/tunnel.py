"""Forwards a local port by a child process, which is restarted when it ends or leads nowhere.

A forwarded port belongs to one pod. When the pod goes, the child ends, or it stays and every connection
through it breaks. Each child takes a free port of its own: another user of this machine could take a port
that is known before anybody listens on it, and would be sent the token.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.kube.kubectl import find_reason
from oku_cli.process.child import Child, describe_death
from oku_cli.process.environment import drop_own
from oku_core.process.supervision import cancel_tasks

_READY_TIMEOUT_S = 20.0
_POLL_S = 0.05
POLL_S = 2.0
PROBE_TIMEOUT = aiohttp.ClientTimeout(total=5)
_MAX_SILENT_PROBES = 2
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
_END_S = 2.0
_FORWARDING = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+)", re.MULTILINE)
_NO_REASON = re.compile(r"^$|^Forwarding from |^Handling connection for ")
"""Lines that a child prints while all is well."""


@asynccontextmanager
async def open_tunnel(
    command: Sequence[str], explain: Callable[[], Awaitable[str]]
) -> AsyncIterator["Tunnel"]:
    """Forward a port by a command as long as the context lasts; see `Tunnel`.

    Raises:
        UnreachableError: the tunnel does not get ready.
    """
    with tempfile.TemporaryDirectory(prefix="oku-") as folder:
        tunnel = Tunnel(command, Path(folder), explain)
        try:
            await tunnel.start()
            watching = asyncio.create_task(tunnel.watch())
            try:
                yield tunnel
            finally:
                await cancel_tasks([watching])
        finally:
            tunnel.end()


class Tunnel:
    """Keeps a forwarded port open by one child process after the other.

    Args:
        command: the command that forwards a free local port, and prints which one.
        folder: the folder for the logs of the children.
        explain: finds out why nothing answers at the other end; an empty text if that is not known.
    """

    def __init__(self, command: Sequence[str], folder: Path, explain: Callable[[], Awaitable[str]]) -> None:
        self._command = command
        self._folder = folder
        self._explain = explain
        self._children = 0
        self._port: str | None = None
        self._child = self._build_child()
        self._pause_s = FIRST_PAUSE_S
        self._silent_probes = 0
        self._trouble = ""
        self._obstacle = ""

    @property
    def url(self) -> str:
        """The URL of its local end, which changes when the tunnel is rebuilt.

        Raises:
            UnreachableError: the tunnel leads nowhere at present.
        """
        # Checked at each call: the port of a child that has ended may be anybody's.
        if self._is_down() or not self._find_port():
            reason = self.find_trouble() or "kubectl port-forward is being started"
            raise UnreachableError(f"--kube: the coordinator does not answer: {reason}")
        return f"http://127.0.0.1:{self._port}"

    def find_trouble(self) -> str:
        """Return why the tunnel leads nowhere; empty while it works, or while that is not known."""
        return self._obstacle or self._read_death() or self._trouble

    async def start(self) -> None:
        """Start the first child, and wait until it has a port."""
        try:
            self._child.start()
        except OSError as error:
            raise _build_error(str(error)) from error
        for _ in range(int(_READY_TIMEOUT_S / _POLL_S)):
            if self._find_port():
                return
            if self._child.find_death() is not None:
                break
            await asyncio.sleep(_POLL_S)
        raise _build_error(find_reason(self._child.read_last_line()))

    async def probe(self, path: str) -> int | None:
        """Return the status with which the coordinator answers at a path; None if it does not answer."""
        async with aiohttp.ClientSession(timeout=PROBE_TIMEOUT) as session:
            return await self._request(session, path)

    async def watch(self) -> None:
        """Restart the child whenever it leads nowhere, until cancelled."""
        async with aiohttp.ClientSession(timeout=PROBE_TIMEOUT) as session:
            while True:
                await asyncio.sleep(self._pause_s if self._is_down() else POLL_S)
                try:
                    await self._probe(session)
                except Exception as error:  # noqa: BLE001  # nothing else would forward the port again
                    self._trouble = f"kubectl port-forward cannot be started: {error}"

    def end(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.wait(_END_S)

    async def _probe(self, session: aiohttp.ClientSession) -> None:
        if not self._is_down():
            if await self._request(session, "/healthz") is not None:
                self._pause_s, self._silent_probes = FIRST_PAUSE_S, 0
                self._trouble = self._obstacle = ""
                return
            self._silent_probes += 1
            if self._silent_probes < _MAX_SILENT_PROBES:
                return
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._trouble = self._read_death() or "kubectl port-forward led nowhere, it is started again"
        self._start_again()
        # Afterwards: it takes as long as the cluster does, and meanwhile the child gets ready.
        self._obstacle = await self._explain()

    def _start_again(self) -> None:
        self.end()
        self._silent_probes = 0
        self._child = self._build_child()
        self._child.start()

    async def _request(self, session: aiohttp.ClientSession, path: str) -> int | None:
        try:
            async with session.get(f"{self.url}{path}") as response:
                return response.status
        except (aiohttp.ClientError, TimeoutError, OSError, UnreachableError):
            return None

    def _is_down(self) -> bool:
        return not self._child.is_alive

    def _read_death(self) -> str:
        code = self._child.find_death()
        if code is None:
            return ""
        line = self._child.read_last_line()
        reason = describe_death(code) if _NO_REASON.search(line) else find_reason(line)
        return f"kubectl port-forward ended: {reason}"

    def _find_port(self) -> str | None:
        if self._port is None:
            with suppress(OSError):  # a child that could not be started has none
                found = _FORWARDING.search(self._log.read_text(errors="replace"))
                self._port = found and found[1]
        return self._port

    def _build_child(self) -> Child:
        self._children += 1
        self._log = self._folder / f"port-forward-{self._children}.log"
        self._port = None
        return Child("port-forward", self._command, self._log, drop_own(os.environ))


def _build_error(reason: str) -> UnreachableError:
    return UnreachableError(f"--kube: no port can be forwarded to the coordinator: {reason}")
