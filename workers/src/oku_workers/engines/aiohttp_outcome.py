"""Which outcome a request has that ended with an exception of aiohttp."""

import asyncio

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientHttpProxyError,
    ClientPayloadError,
    InvalidURL,
    NonHttpUrlClientError,
    RedirectClientError,
    ServerTimeoutError,
)
from aiohttp.http_exceptions import BadHttpMessage, ContentLengthError

from oku_workers.hand import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, TIMEOUT

_NEVER_SENT = (
    ClientConnectorError,
    ClientHttpProxyError,
    InvalidURL,
    NonHttpUrlClientError,
    ValueError,
    TypeError,
)
"""No connection, or a request that cannot be written down."""


def classify(error: Exception) -> int:
    """The outcome, as an index, of a request that ended with an exception."""
    if isinstance(error, ServerTimeoutError | asyncio.TimeoutError):
        return TIMEOUT
    if isinstance(error, RedirectClientError):  # it is one of the others, too, but something was answered
        return PROTOCOL_ERROR
    if isinstance(error, _NEVER_SENT):
        return CONNECT_ERROR
    if isinstance(error, ClientPayloadError):
        # A body that ends early is a lost connection, one that makes no sense is not.
        return PROTOCOL_ERROR if _is_malformed(error) else DISCONNECTED
    if isinstance(error, ClientConnectionError | OSError):
        return DISCONNECTED
    return PROTOCOL_ERROR


def _is_malformed(error: ClientPayloadError) -> bool:
    cause = error.__cause__
    if isinstance(cause, ContentLengthError):
        return False
    return isinstance(cause, BadHttpMessage) and "Not enough data" not in str(cause)
