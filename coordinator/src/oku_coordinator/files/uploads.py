"""Takes files in, piece by piece: each goes to the disk before the next one is read."""

import asyncio
from collections.abc import AsyncIterator
from weakref import WeakValueDictionary

from oku_coordinator.files.file_store import FileStore, StoredFile


class OffsetError(Exception):
    """A piece does not begin where the file ends here.

    Attributes:
        stored: what there is of the file.
    """

    def __init__(self, stored: StoredFile) -> None:
        super().__init__(f"{stored.received} bytes of this file are here: go on with the next one")
        self.stored = stored


class Uploads:
    """The files that are coming in; several may come at once, and a single one from several callers.

    Args:
        store: keeps them.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By digest; one stays for as long as anybody holds it or waits for it."""

    async def receive(self, digest: str, size: int, offset: int, content: AsyncIterator[bytes]) -> StoredFile:
        """Take in a piece of a file.

        Args:
            digest: of the whole file.
            size: of the whole file, in bytes.
            offset: where in the file the piece begins.
            content: the piece, in parts that fit into memory.

        Raises:
            OffsetError: the piece does not begin where the file ends here.
            UserError: the file is too large, the disk is full, or all of it does not have that digest.
        """
        lock = self._locks.setdefault(digest, asyncio.Lock())
        async with lock:
            return await self._receive(digest, size, offset, content)

    async def _receive(
        self, digest: str, size: int, offset: int, content: AsyncIterator[bytes]
    ) -> StoredFile:
        stored = self._store.describe(digest)
        if stored.is_complete:
            return stored
        if stored.received != offset:
            raise OffsetError(stored)
        self._store.admit(digest, size)
        try:
            async for part in content:
                offset += len(part)
                if offset > size:
                    raise OffsetError(self._store.describe(digest))
                await asyncio.to_thread(self._store.append, digest, part)
            if offset == size:
                await asyncio.to_thread(self._store.complete, digest)
        finally:
            self._store.abandon(digest)
        return self._store.describe(digest)
