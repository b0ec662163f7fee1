"""Fetches files from the coordinator: a file in the cache is not fetched again, and transfers are continued.

A coordinator that is away is asked again, with growing pauses, and the transfer goes on where it broke off.
Only lasting errors end it: a ticket that is refused, a file that is gone or wrong, a disk that is full.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from oku_core.messaging.credentials import TICKET_SCHEME
from oku_core.process.supervision import Supervisor
from oku_core.spec.values.file_reference import FileRef
from oku_workers.files.file_cache import (
    FileCache,
    FileError,
    HeldFile,
    PartialFile,
    WrongContentError,
)

if TYPE_CHECKING:
    from oku_core.messaging.order import FilesAddress

T = TypeVar("T")

_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 10.0, 30.0
_PART_BYTES = 1 << 20
_LOOK_S = 0.2
"""How often to look whether another worker of this machine has fetched a file."""
_MOST_WRONG = 2
"""How often a file may arrive with another digest: once, a disk or a network may have been to blame."""


class FileFetcher:
    """Fetches files into a cache; belongs to the thread of the event loop.

    Args:
        supervisor: shows the troubles of fetching.

    Attributes:
        address: where the coordinator serves files; None while that is unknown.
        tickets: the permissions to fetch files, by their digests.
    """

    def __init__(
        self,
        cache: FileCache,
        supervisor: Supervisor,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._cache = cache
        self._supervisor = supervisor
        self._sleep = sleep
        self.address: FilesAddress | None = None
        self.tickets: dict[str, str] = {}

    async def fetch(self, file: FileRef) -> HeldFile:
        """Have a file, and hold it; this takes as long as the coordinator is away.

        Raises:
            FileError: it cannot be had.
        """
        import aiohttp  # noqa: PLC0415  # it takes long, and most runs have no files

        health = self._supervisor.enlist(f"file {file.name}")
        wrong = 0
        try:
            while True:
                try:
                    return await self._try(file)
                except WrongContentError:
                    wrong += 1
                    if wrong >= _MOST_WRONG:
                        raise
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    await self._sleep(health.record_failure(error))
        finally:
            self._supervisor.dismiss(health)

    async def _try(self, file: FileRef) -> HeldFile:
        while True:
            if held := await _get_in_thread(lambda: self._cache.hold(file), _release):
                return held
            if partial := await _get_in_thread(lambda: self._cache.open_partial(file), _close):
                break
            await self._sleep(_LOOK_S)
        try:
            if partial.received < file.size:
                await self._download(file, partial)
            return await _get_in_thread(partial.finish, _release)
        finally:
            partial.close()

    async def _download(self, file: FileRef, partial: PartialFile) -> None:
        if (address := self.address) is None:
            raise ConnectionError("the coordinator has not said yet where it gives files")
        headers = {"Authorization": f"{TICKET_SCHEME} {self.tickets.get(file.digest, '')}"}
        if partial.received:
            headers["Range"] = f"bytes={partial.received}-"
        import aiohttp  # noqa: PLC0415

        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=_READ_TIMEOUT_S
        )
        async with (
            aiohttp.ClientSession(
                timeout=timeout, read_bufsize=_PART_BYTES, auto_decompress=False
            ) as session,
            session.get(f"{address.url}/files/{file.digest}", headers=headers) as response,
        ):
            self._check(response.status)
            if response.status != HTTPStatus.PARTIAL_CONTENT:
                partial.restart()
            async for part in response.content.iter_chunked(_PART_BYTES):
                await asyncio.to_thread(partial.append, part)
        if partial.received < file.size:
            raise ConnectionError("the coordinator broke off")

    def _check(self, status: int) -> None:
        if status == HTTPStatus.FORBIDDEN:
            raise FileError("the coordinator refuses the ticket")
        if status == HTTPStatus.NOT_FOUND:
            raise FileError("the coordinator does not have it any more")
        if status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            raise ConnectionError(f"the coordinator answers {status}")


async def _get_in_thread(get: Callable[[], T], let_go: Callable[[T], object]) -> T:
    """Get something in a thread; let go of it if the task is cancelled meanwhile, or its lock would stay."""
    getting = asyncio.ensure_future(asyncio.to_thread(get))
    try:
        return await asyncio.shield(getting)
    except asyncio.CancelledError:
        getting.add_done_callback(lambda done: done.cancelled() or done.exception() or let_go(done.result()))
        raise


def _release(held: HeldFile | None) -> None:
    if held is not None:
        held.release()


def _close(partial: PartialFile | None) -> None:
    if partial is not None:
        partial.close()
