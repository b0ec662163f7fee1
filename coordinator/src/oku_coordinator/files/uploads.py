"""Takes files in, piece by piece: each goes to the disk before the next one is read."""

import asyncio
from collections.abc import AsyncIterator
from weakref import WeakValueDictionary

from oku_coordinator.files.file_store import FileStore, StoredFile
from oku_core.spec.values.file_reference import FileClaim


class OffsetError(Exception):
    """A piece does not begin where the file ends here."""

    def __init__(self, stored: StoredFile) -> None:
        super().__init__(f"{stored.received} bytes of this file are here: go on with the next one")
        self.stored = stored


class Uploads:
    """The files that are coming in; several may come at once, and a single one from several callers."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._locks: WeakValueDictionary[FileClaim, asyncio.Lock] = WeakValueDictionary()
        """One stays for as long as anybody holds it or waits for it."""

    async def receive(
        self, claim: FileClaim, size: int, offset: int, content: AsyncIterator[bytes]
    ) -> StoredFile:
        """Take in a piece of a file.

        Args:
            claim: digest and proof of the whole file.
            size: of the whole file, in bytes.
            offset: where in the file the piece begins.
            content: the piece, in parts that fit into memory.

        Raises:
            OffsetError: the piece does not begin where the file ends here.
            UserError: the file is too large, the disk is full, or all of it is not what the claim says.
        """
        lock = self._locks.setdefault(claim, asyncio.Lock())
        async with lock:
            return await self._receive(claim, size, offset, content)

    async def _receive(
        self, claim: FileClaim, size: int, offset: int, content: AsyncIterator[bytes]
    ) -> StoredFile:
        stored = self._store.describe(claim)
        if stored.is_complete:
            return stored
        if stored.received != offset:
            raise OffsetError(stored)
        self._store.admit(claim, size)
        try:
            async for part in content:
                offset += len(part)
                if offset > size:
                    raise OffsetError(self._store.describe(claim))
                await asyncio.to_thread(self._store.append, claim, part)
            if offset == size:
                await asyncio.to_thread(self._store.complete, claim)
        finally:
            self._store.abandon(claim)
        return self._store.describe(claim)
