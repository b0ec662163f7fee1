"""The files of runs: callers of the API upload them piece by piece, and download the files of a run.

Workers download them at another port: `GET /files/DIGEST`, with a ticket for that file. The token of the API
is not valid there, and a ticket is not valid here.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import HttpProcessingError

from oku_coordinator.api.authentication import RefusedCallers
from oku_coordinator.api.connection_table import ConnectionLimits
from oku_coordinator.files.file_store import FileStore, StoredFile, UnknownFileError
from oku_coordinator.files.uploads import Uploads
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.runs.run_documents import read_run_rows
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.digits import parse_digits
from oku_core.errors import UserError, format_value
from oku_core.messaging.credentials import TICKET_SCHEME, Credential, CredentialFault, judge_ticket
from oku_core.messaging.signing import Signer
from oku_core.process.clock import Clock
from oku_core.spec.files import MOST_BYTES, list_files, list_public_files
from oku_core.spec.values.file_reference import PROOF_HEADER, FileClaim, find_file_reference, is_digest

MOST_PIECE_BYTES = 16 << 20
"""The largest piece; a caller splits a larger file."""
_SILENT_S = 30.0
"""The longest pause between two parts of a piece."""
_PART_BYTES = 1 << 18
_MOST_COUNT = 10**15 - 1
_MOST_INDEX = 10**16 - 1
_KEY_MARK = b"PRIVATE KEY-----"
"""Ends the line before a private key in a PEM file (RFC 7468)."""
DOWNLOAD_LIMITS = ConnectionLimits(most=256, most_per_address=64)
"""More workers than that try again later."""
_MOST_TRANSFERS = 64
"""Concurrent transfers; each worker gets its file sooner if they take turns."""
UNREADABLE_DATE = "the date in a header cannot be read"


def build_upload_routes(store: FileStore) -> list[web.RouteDef]:
    """Build the routes, for an application that checks the token."""
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
    """Read a piece part by part; a truncated piece raises an error after its last part."""
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
        raise UserError(f"the header {PROOF_HEADER} is missing; it proves that you have the file")
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


def build_run_file_routes(ledger: Ledger, store: FileStore) -> list[web.RouteDef]:
    """Build the routes, for an application that checks the token."""

    async def show_rows(request: web.Request) -> web.Response:
        with ledger.read() as t:
            record = run_table.fetch_run(t, request.match_info["run"])
        wanted = range(_read_index(request.query, "start"), _read_index(request.query, "stop"))
        rows = await asyncio.to_thread(read_run_rows, record.run, record.spec, store.find, wanted)
        return web.Response(body=msgspec.json.encode(rows), content_type="application/json")

    async def show_file(request: web.Request) -> web.FileResponse:
        with ledger.read() as t:
            record = run_table.fetch_run(t, request.match_info["run"])
        digest = request.match_info["digest"]
        if not is_digest(digest):
            raise UserError(f"{format_value(digest)} is not a SHA-256 in hexadecimal")
        if digest not in {file.digest for file in list_public_files(record.spec)}:
            if any(file.digest == digest for file in list_files(record.spec)):
                what = "a private key or a client certificate, which only workers get"
                raise UserError(f"file {digest} of run {record.run} is {what}")
            raise UserError(f"run {record.run} has no file {digest}")
        if not has_readable_dates(request):
            raise UserError(UNREADABLE_DATE)
        path, cacert = store.find(digest), find_file_reference(record.spec.cacert)
        if cacert is not None and cacert.digest == digest and await asyncio.to_thread(_has_key, path):
            raise UserError(f"file {digest} of run {record.run} has a private key, which only workers get")
        return web.FileResponse(path, headers={"Content-Type": "application/octet-stream"})

    return [
        web.get("/api/runs/{run}/rows", show_rows, allow_head=False),
        web.get("/api/runs/{run}/files/{digest}", show_file, allow_head=False),
    ]


def _has_key(path: Path) -> bool:
    """Whether a file of CA certificates also contains a private key, as some test files do."""
    with path.open("rb") as file:
        return _KEY_MARK in file.read(MOST_BYTES)


def _read_index(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if (index := parse_digits(text, _MOST_INDEX)) is None:
        raise UserError(f"{name}: {format_value(text)} is not an index")
    return index


class _Transfer(web.FileResponse):
    """A file or the requested range of it; the kernel copies it, not this process."""

    def __init__(self, path: Path, transfers: asyncio.Semaphore) -> None:
        super().__init__(path, headers={"Content-Type": "application/octet-stream"})
        self._transfers = transfers

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the whole file."""
        async with self._transfers:
            return await super().prepare(request)


def has_readable_dates(request: web.Request) -> bool:
    """Whether aiohttp can parse the dates in a request's conditions; otherwise it fails while answering."""
    try:
        _ = request.if_modified_since, request.if_unmodified_since, request.if_range
    except OverflowError:  # in the year 99999999999
        return False
    return True


def build_download_api(
    store: FileStore,
    signer: Signer,
    clock: Clock,
    metrics: Metrics,
) -> web.Application:
    """Build the application of the port for workers; `signer` signs the tickets, `clock` is Unix time."""
    api = web.Application()
    refused = RefusedCallers(api, Credential.TICKET, metrics)
    transfers = asyncio.Semaphore(_MOST_TRANSFERS)

    async def fetch(request: web.Request) -> web.StreamResponse:
        digest = request.match_info["digest"]
        if refusal := _judge(signer, digest, request.headers.get("Authorization", ""), clock()):
            refused.record(request, refusal)
            return web.Response(status=403, text="the ticket is missing, wrong or expired\n")
        try:
            path = store.find(digest)
        except UnknownFileError as error:
            return web.Response(status=404, text=f"{error}\n")
        if not has_readable_dates(request):
            return web.Response(status=400, text=f"{UNREADABLE_DATE}\n")
        if transfers.locked():
            return web.Response(status=503, text="too many transfers, try again\n")
        return _Transfer(path, transfers)

    api.add_routes([web.get("/files/{digest}", fetch, allow_head=False)])
    return api


def _judge(signer: Signer, digest: str, header: str, now: float) -> CredentialFault | None:
    """The fault of an `Authorization` header for the file with this digest; None if it is valid."""
    scheme, _, ticket = header.partition(" ")
    if scheme != TICKET_SCHEME:
        return CredentialFault.MALFORMED if header else CredentialFault.MISSING
    return judge_ticket(signer, digest, ticket, now) if is_digest(digest) else CredentialFault.WRONG
