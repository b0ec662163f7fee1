"""A long body for aiohttp, which would copy bytes behind the headers, and write all of them at once."""

import asyncio

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from oku_core.http_client.defaults import BODY_TYPE
from oku_workers.engines.defaults import PIECE_BYTES


class LongBody(Payload):
    """Bytes that are sent in pieces, each after the one before; they are never copied as a whole."""

    _value: bytes
    _autoclose = True

    def __init__(self, content: bytes) -> None:
        super().__init__(content, content_type=BODY_TYPE)
        self._size = len(content)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Decode the content."""
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the content."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the content up to the length in a header; all of it if that is None."""
        content = memoryview(self._value)[:content_length]
        for at in range(0, len(content), PIECE_BYTES):
            await writer.write(content[at : at + PIECE_BYTES])
            await asyncio.sleep(0)  # a server that reads at once must not block the event loop
