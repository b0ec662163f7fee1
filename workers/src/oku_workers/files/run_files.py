"""The files of the runs whose leases a worker has: each is fetched once, and kept while it is used.

Between two leases of a run its files are unused for a moment, so they stay for a while longer.
"""

import asyncio
import logging
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path

from oku_core.messaging.order import FilesAddress
from oku_core.spec.files import SpecFileError
from oku_core.spec.values.file_reference import FileRef
from oku_workers.files.file_cache import FileCache, FileError, HeldFile
from oku_workers.files.file_fetcher import FileFetcher

_log = logging.getLogger(__name__)

LINGER_S = 60.0
"""How long a file stays that no lease uses."""
_ANNOUNCED_S = 60.0
"""A coordinator repeats every second which files the run needs that has its turn. After this long without a
word, it is another run's turn."""


class RunFiles:
    """Keeps files while they are used, and for `linger_s` afterwards; belongs to the event loop's thread."""

    def __init__(self, fetcher: FileFetcher, cache: FileCache, linger_s: float = LINGER_S) -> None:
        self._fetcher = fetcher
        self._cache = cache
        self._linger_s = linger_s
        self._users: dict[str, set[Hashable]] = {}
        self._fetching: dict[str, asyncio.Task[HeldFile]] = {}
        self._prepared: dict[str, None] = {}
        self._changes = 0
        self._ending: asyncio.TimerHandle | None = None

    @property
    def settled(self) -> list[str]:
        """Of the files that are prepared, by their digests, those that are here, or cannot be had."""
        return [digest for digest in self._prepared if self._fetching[digest].done()]

    def prepare(self, files: Iterable[FileRef]) -> None:
        """Begin to fetch the files of the run that has its turn; they stay while this is repeated.

        `provide` tries failed ones again, and raises the reason.
        """
        before = self._prepared
        self._prepared = {}
        for file in files:
            self._users.setdefault(file.digest, set()).add(self)
            if file.digest not in self._fetching or self._is_lost(file.digest):
                self._begin(file)
            self._prepared[file.digest] = None
        if before.keys() - self._prepared.keys():
            self.release(self)
            for digest in self._prepared:
                self._users[digest].add(self)
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(_ANNOUNCED_S, self._end_preparation)

    def set_address(self, address: FilesAddress) -> None:
        """Set where the coordinator serves files."""
        self._fetcher.address = address

    def add_tickets(self, tickets: Mapping[str, str]) -> None:
        """Add tickets for files, by their digests; newer tickets replace older ones."""
        self._fetcher.tickets |= tickets

    async def provide(self, files: Iterable[FileRef], user: Hashable) -> None:
        """Fetch missing files, and keep all of them until `release` is called for this user.

        Files that another program has removed or changed are fetched again.

        Raises:
            FileError: one of them cannot be had; the message names it.
        """
        for file in files:
            self._users.setdefault(file.digest, set()).add(user)
            fetching = self._fetching.get(file.digest)
            if fetching is None or self._has_failed(fetching) or self._is_lost(file.digest):
                fetching = self._begin(file)
            try:
                # Others wait for the same file.
                await asyncio.shield(fetching)
            except FileError as error:
                raise FileError(f"file {file.name} cannot be had: {error}") from error

    def release(self, user: Hashable) -> None:
        """End the use of files by a user; unused files are removed after a while."""
        loop = asyncio.get_running_loop()
        for digest, users in self._users.items():
            if user in users:
                users.discard(user)
                if not users:
                    loop.call_later(self._linger_s, self._drop_unused, digest)

    def path_of(self, digest: str) -> Path:
        """Where a file is that was provided; `SpecFileError` if it was not."""
        fetching = self._fetching.get(digest)
        if fetching is None or not fetching.done() or fetching.exception() is not None:
            raise SpecFileError("it was not fetched")
        return fetching.result().path

    @property
    def changes(self) -> int:
        """How many files were changed while they were in use: anyone who has them open must reopen them."""
        return self._changes

    def are_whole(self, files: Iterable[FileRef]) -> bool:
        """Whether all of some files are here and unchanged."""
        return all(
            (fetching := self._fetching.get(file.digest)) is not None
            and fetching.done()
            and not self._has_failed(fetching)
            and fetching.result().is_whole
            for file in files
        )

    def _has_failed(self, fetching: asyncio.Task[HeldFile]) -> bool:
        return fetching.done() and fetching.exception() is not None

    def _is_lost(self, digest: str) -> bool:
        """Whether a file that was here is gone or changed; it is released then."""
        fetching = self._fetching[digest]
        if not fetching.done() or self._has_failed(fetching) or (held := fetching.result()).is_whole:
            return False
        _log.warning("file %s was removed or changed by another program; it is fetched again", held.path)
        self._changes += held.is_changed
        del self._fetching[digest]
        asyncio.get_running_loop().run_in_executor(None, held.release)
        return True

    def _begin(self, file: FileRef) -> asyncio.Task[HeldFile]:
        fetching = asyncio.get_running_loop().create_task(self._fetcher.fetch(file))
        # Every waiting task receives a failure; there may be none.
        fetching.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._fetching[file.digest] = fetching
        return fetching

    def _end_preparation(self) -> None:
        self._prepared = {}
        self.release(self)

    async def close(self) -> None:
        """Remove all of them."""
        if self._ending is not None:
            self._ending.cancel()
        self._prepared = {}
        fetching, self._fetching = list(self._fetching.values()), {}
        for task in fetching:
            task.cancel()
        for ended in await asyncio.gather(*fetching, return_exceptions=True):
            if isinstance(ended, HeldFile):
                await asyncio.to_thread(ended.release)
        await asyncio.to_thread(self._cache.clear)

    def _drop_unused(self, digest: str) -> None:
        if self._users.get(digest):
            return
        self._users.pop(digest, None)
        fetching = self._fetching.pop(digest, None)
        if fetching is not None and not fetching.done():
            fetching.cancel()
        elif fetching is not None and fetching.exception() is None:
            # To remove a large file may take a while.
            asyncio.get_running_loop().run_in_executor(None, fetching.result().release)
