"""Makes the HTTP client and the rows of scenarios and hooks, from the first message of the worker."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from oku.http.http import Http
from oku.http.http_client import HttpClient
from oku.http.scope import Scope
from oku_core.data.escape import AS_TEXT, IN_HEADER
from oku_core.data.row_reader import RowReader, Value
from oku_core.http_client.tls import SpecTls
from oku_core.spec.files import EVERYWHERE, SpecFiles
from oku_core.spec.spec import Spec, decode_spec
from oku_core.spec.values.template import Template
from oku_core.user_code.messages import Call, Start


def build_client(message: Start | Call, spec: Spec, rows: RowReader | None = None) -> HttpClient:
    """Build the client for the running event loop.

    Args:
        message: the first one of the worker.
        spec: the one in it.
        rows: its rows; None without data.
    """
    tls = SpecTls(spec, SpecFiles(EVERYWHERE.folders, _find_files(message).__getitem__))
    if spec.cert or spec.cacert or (spec.base_url is not None and spec.base_url.scheme == "https"):
        tls.build()  # it takes a while: not within a request
    local_address = message.local_address if isinstance(message, Start) else None
    return HttpClient(spec, tls, rows, local_address)


@asynccontextmanager
async def open_http(message: Start | Call) -> AsyncIterator[Http]:
    """An `Http` outside of iterations, for hooks: its requests are not counted, and failures raise."""
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
    return RowReader(data.locate(_find_files(message).__getitem__), list(dict.fromkeys(values)))


def _find_files(message: Start | Call) -> dict[str, Path]:
    """Where the files of the run are, by their digests."""
    return {digest: Path(os.fsdecode(path)) for digest, path in message.paths.items()}
