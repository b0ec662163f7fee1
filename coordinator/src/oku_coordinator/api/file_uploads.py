"""The calls by which a command uploads the files of a run: what is here of one, and one more piece of it.

A caller proves with each that it has the file (`oku_core.spec.values.file_reference`). Otherwise it is told
that nothing is here.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from oku_coordinator.files.file_store import FileStore, StoredFile
from oku_coordinator.files.uploads import Uploads
from oku_core.digits import parse_digits
from oku_core.errors import UserError, format_value
from oku_core.spec.values.file_reference import PROOF_HEADER, FileClaim

MOST_PIECE_BYTES = 16 << 20
"""The largest piece; a caller sends a larger file in several."""
_SILENT_S = 30.0
"""How long the next part of a piece may take to come."""
_PART_BYTES = 1 << 18
_MOST_COUNT = 10**15 - 1


def build_upload_routes(store: FileStore) -> list[web.RouteDef]:
    """The routes, for an application that checks the token."""
    uploads = Uploads(store)

    async def describe(request: web.Request) -> web.Response:
        return _answer(store.describe(_read_claim(request)))

    async def upload(request: web.Request) -> web.Response:
        claim = _read_claim(request)
        size, offset = _read_count(request.query, "size"), _read_count(request.query, "offset")
        if (request.content_length or 0) > MOST_PIECE_BYTES:
            raise web.HTTPRequestEntityTooLarge(
                MOST_PIECE_BYTES, request.content_length or 0, reason="a piece has at most 16 MiB"
            )
        return _answer(await uploads.receive(claim, size, offset, _read_parts(request)))

    return [
        web.get("/api/files/{digest}", describe, allow_head=False),
        web.put("/api/files/{digest}", upload),
    ]


async def _read_parts(request: web.Request) -> AsyncIterator[bytes]:
    """What comes of a piece, part by part; a piece that is cut short is an error after the last part."""
    received = 0
    while True:
        try:
            async with asyncio.timeout(_SILENT_S):
                part = await request.content.read(_PART_BYTES)
        except TimeoutError:
            raise web.HTTPRequestTimeout(reason=f"nothing came for {_SILENT_S:g} s") from None
        except (web.RequestPayloadError, HttpProcessingError, ConnectionError):
            raise UserError("the piece was cut short") from None
        if not part:
            return
        received += len(part)
        if received > MOST_PIECE_BYTES:
            raise UserError(f"a piece has at most {MOST_PIECE_BYTES} bytes")
        yield part


def _read_claim(request: web.Request) -> FileClaim:
    if (proof := request.headers.get(PROOF_HEADER)) is None:
        raise UserError(f"the header {PROOF_HEADER} is missing, which proves that you have the file")
    try:
        return FileClaim.read(request.match_info["digest"], proof)
    except ValueError as error:
        raise UserError(str(error)) from None


def _read_count(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if (count := parse_digits(text, _MOST_COUNT)) is None:
        raise UserError(f"{name}: {format_value(text)} is not a number of bytes")
    return count


def _answer(stored: StoredFile) -> web.Response:
    return web.Response(body=msgspec.json.encode(stored), content_type="application/json")
