"""Receives files piece by piece: each part is written to the disk before the next one is read."""

import asyncio
from collections.abc import AsyncIterator
from weakref import WeakValueDictionary

from oku_coordinator.files.file_store import FileStore, StoredFile
from oku_core.spec.values.file_reference import FileClaim


class OffsetError(Exception):
    """A piece does not start where the stored part ends."""

    def __init__(self, stored: StoredFile) -> None:
        super().__init__(f"{stored.received} bytes of this file are here: go on with the next one")
        self.stored = stored


class Uploads:
    """The running uploads; several files at once, and one file from several callers."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._locks: WeakValueDictionary[FileClaim, asyncio.Lock] = WeakValueDictionary()
        """A lock lives as long as a task holds it or waits for it."""

    async def receive(
        self, claim: FileClaim, size: int, offset: int, content: AsyncIterator[bytes]
    ) -> StoredFile:
        """Receive a piece of a file.

        Args:
            claim: digest and proof of the whole file.
            size: of the whole file, in bytes.
            offset: where the piece starts in the file.
            content: the piece, in parts that fit into memory.

        Raises:
            OffsetError: the piece does not start where the stored part ends.
            UserError: the file is too large, the disk is full, or the complete file does not match the claim.
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
