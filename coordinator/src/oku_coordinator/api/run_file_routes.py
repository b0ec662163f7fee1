"""The calls by which a command looks at what requests of a run are made of: its rows, and its files.

A private key is not given to anybody but workers, nor is a certificate, which may have its key beside it.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
from aiohttp import web

from oku_coordinator.api.file_downloads import UNREADABLE_DATE, has_readable_dates
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.runs.row_lookup import read_run_rows
from oku_core.digits import parse_digits
from oku_core.errors import UserError, format_value
from oku_core.spec.files import MOST_BYTES, list_files, list_public_files
from oku_core.spec.values.file_reference import find_file_reference, is_digest

_MOST_INDEX = 10**16 - 1
_KEY_MARK = b"PRIVATE KEY-----"
"""Ends the line before a private key in a PEM file (RFC 7468)."""


def build_run_file_routes(ledger: Ledger, store: FileStore) -> list[web.RouteDef]:
    """The routes, for an application that checks the token."""

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
    """Whether a file of authorities has a private key, too, as some that were made for a test have."""
    with path.open("rb") as file:
        return _KEY_MARK in file.read(MOST_BYTES)


def _read_index(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if (index := parse_digits(text, _MOST_INDEX)) is None:
        raise UserError(f"{name}: {format_value(text)} is not an index")
    return index
