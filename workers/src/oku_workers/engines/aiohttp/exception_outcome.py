"""The outcome of a request that ended with an exception of aiohttp."""

import asyncio

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientHttpProxyError,
    InvalidURL,
    NonHttpUrlClientError,
    ServerTimeoutError,
)

from oku_core.data.data_format import DataError
from oku_workers.executions.tally import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, TIMEOUT

_NEVER_SENT = (
    ClientConnectorError,
    ClientHttpProxyError,
    InvalidURL,
    NonHttpUrlClientError,
    DataError,
    ValueError,
    TypeError,
)
"""There was no connection, or the request cannot be written down."""


def classify(error: Exception) -> int:
    """The outcome, as an index, of a request that ended with an exception."""
    if isinstance(error, ServerTimeoutError | asyncio.TimeoutError):
        return TIMEOUT
    if isinstance(error, _NEVER_SENT):
        return CONNECT_ERROR
    if isinstance(error, ClientConnectionError | OSError):
        return DISCONNECTED
    return PROTOCOL_ERROR
