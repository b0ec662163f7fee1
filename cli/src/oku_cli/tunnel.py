"""A local port that is forwarded by a child process, which is started again when it ends or leads nowhere.

A forwarded port belongs to one pod; when that goes, the child ends, or stays and every connection through it
breaks. The local port stays the same, so that whoever uses it has only to try again.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from oku_cli.child import Child
from oku_cli.client import UnreachableError

_READY_TIMEOUT_S = 20.0
_POLL_S = 0.05
_LOOK_S = 2.0
_PROBE_TIMEOUT = aiohttp.ClientTimeout(total=5)
_MAX_SILENT_PROBES = 2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 5.0
_END_S = 2.0
_FORWARDING = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+)", re.MULTILINE)


@asynccontextmanager
async def open_tunnel(build_command: Callable[[int], list[str]]) -> AsyncIterator[str]:
    """Forward a port; gives the URL of its local end, which stays until the end of the context.

    Args:
        build_command: the command that forwards a local port, 0 for any free one.

    Raises:
        UnreachableError: it does not get ready.
    """
    with tempfile.TemporaryDirectory(prefix="oku-") as folder:
        tunnel = _Tunnel(build_command, Path(folder) / "port-forward.log")
        try:
            port = await tunnel.start()
            watching = asyncio.create_task(tunnel.watch())
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
        finally:
            tunnel.end()


class _Tunnel:
    def __init__(self, build_command: Callable[[int], list[str]], log: Path) -> None:
        self._build_command = build_command
        self._log = log
        self._port = 0
        self._child = self._build_child()

    async def start(self) -> int:
        """Start the first child; the port that it has taken."""
        self._child.start()
        for _ in range(int(_READY_TIMEOUT_S / _POLL_S)):
            if found := _FORWARDING.search(self._log.read_text(errors="replace")):
                self._port = int(found[1])
                return self._port
            if self._child.find_death() is not None:
                break
            await asyncio.sleep(_POLL_S)
        reason = self._child.read_last_line().removeprefix("error: ") or "kubectl port-forward says nothing"
        raise UnreachableError(f"--kube: no port can be forwarded to the coordinator: {reason}")

    async def watch(self) -> None:
        """Keep a child alive that leads somewhere, for ever."""
        pause_s, silent = _FIRST_PAUSE_S, 0
        async with aiohttp.ClientSession(timeout=_PROBE_TIMEOUT) as session:
            while True:
                await asyncio.sleep(pause_s if self._child.find_death() is not None else _LOOK_S)
                if self._child.find_death() is None and await self._leads_somewhere(session):
                    pause_s, silent = _FIRST_PAUSE_S, 0
                    continue
                silent += 1
                if self._child.find_death() is not None or silent >= _MAX_SILENT_PROBES:
                    self.end()
                    self._child = self._build_child()
                    self._child.start()
                    pause_s, silent = min(2 * pause_s, _LONGEST_PAUSE_S), 0

    def end(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.wait(_END_S)

    async def _leads_somewhere(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"http://127.0.0.1:{self._port}/healthz"):
                return True
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    def _build_child(self) -> Child:
        return Child("port-forward", self._build_command(self._port), self._log, os.environ)
