"""Makes what scenarios and hooks make requests with, from what a worker has said."""

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from oku.client.http_client import HttpClient
from oku.http.http import Http
from oku.http.scope import Scope
from oku_core.data.escape import AS_TEXT, IN_HEADER
from oku_core.data.row_reader import RowReader, Value
from oku_core.http_client.tls import build_tls
from oku_core.spec.files import EVERYWHERE, SpecFiles
from oku_core.spec.spec import Spec, decode_spec
from oku_core.spec.values.template import Template
from oku_core.user_code.messages import Call, Start


def build_client(message: Start | Call, spec: Spec, rows: RowReader | None = None) -> HttpClient:
    """What sends requests, in the running event loop.

    Args:
        message: what the worker has said first.
        spec: the one in it.
        rows: its rows; None without data.
    """
    paths = _find_files(message)
    # The worker has read them before, and only what its operator allows.
    files = SpecFiles(EVERYWHERE.folders, lambda file: paths[file.digest])

    @cache
    def build_settings() -> ssl.SSLContext:
        settings = build_tls(spec, files)
        assert settings is not None  # user code may ask for any URL
        return settings

    if spec.cert or spec.cacert or (spec.base_url is not None and spec.base_url.scheme == "https"):
        build_settings()  # it takes a while: not within a request
    local_address = message.local_address if isinstance(message, Start) else None
    return HttpClient(spec, build_settings, rows, local_address)


@asynccontextmanager
async def open_http(message: Start | Call) -> AsyncIterator[Http]:
    """An `Http` outside of iterations, for hooks: its requests are not counted, and what fails raises."""
    client = build_client(message, decode_spec(message.spec))
    try:
        yield Http(client, Scope())
    finally:
        client.close()


def open_rows(message: Start, spec: Spec) -> RowReader | None:
    """The rows of the run, all columns as text first; None without data.

    Raises:
        DataError: they cannot be read, or are not what the spec says.
    """
    data = spec.data
    if data is None:
        return None
    values = [Value(column, AS_TEXT) for column in data.columns]
    for header in spec.headers:
        values += Template.parse(header.value, data.columns, IN_HEADER).values
    paths = _find_files(message)
    return RowReader(
        paths[data.digest], paths[data.index], data.table, data.rows, list(dict.fromkeys(values))
    )


def _find_files(message: Start | Call) -> dict[str, Path]:
    """Where the files of the run are, by their digests."""
    return {digest: Path(os.fsdecode(path)) for digest, path in message.paths.items()}
