"""Classifies the requests of Locust's clients: the outcome, and the reason of a failure."""

import http.client
import re
import zlib
from ssl import SSLError

import requests
import urllib3.exceptions
from gevent.timeout import Timeout
from geventhttpclient._parser import HTTPParseError
from geventhttpclient.response import HTTPConnectionClosed
from geventhttpclient.useragent import RetriesExceeded
from locust.contrib.fasthttp import LocustBadStatusCode
from locust.exception import CatchResponseError, ResponseError

from oku.locust_host.locust_redirects import RedirectFailureError
from oku_core.accounting.outcome import (
    CONNECT_ERROR,
    DISCONNECTED,
    FAILED_CHECK,
    PROTOCOL_ERROR,
    TIMEOUT,
    UNEXPECTED_STATUS,
)
from oku_core.http_client.error_reason import (
    CUT_SHORT,
    explain_error,
    explain_proxy_refusal,
    explain_status,
    explain_timeout,
)

_BY_TYPE: tuple[tuple[tuple[type[BaseException], ...], int], ...] = (
    ((RedirectFailureError, requests.TooManyRedirects), PROTOCOL_ERROR),
    ((requests.HTTPError, LocustBadStatusCode), UNEXPECTED_STATUS),
    ((CatchResponseError, ResponseError, AssertionError), FAILED_CHECK),
    (
        (requests.Timeout, TimeoutError, Timeout, urllib3.exceptions.TimeoutError),
        TIMEOUT,
    ),
    ((urllib3.exceptions.InvalidChunkLength,), PROTOCOL_ERROR),
    (
        (
            ConnectionResetError, BrokenPipeError, ConnectionAbortedError, HTTPConnectionClosed,
            http.client.RemoteDisconnected, http.client.IncompleteRead,
            requests.exceptions.ChunkedEncodingError,
        ),
        DISCONNECTED,
    ),
    (
        (
            HTTPParseError, http.client.HTTPException, zlib.error, requests.exceptions.ContentDecodingError,
            urllib3.exceptions.HTTPError, UnicodeError,
        ),
        PROTOCOL_ERROR,
    ),
    ((SSLError, requests.exceptions.SSLError, requests.exceptions.ProxyError, OSError), CONNECT_ERROR),
)  # fmt: skip
"""Outcomes by type of exception; the first match counts."""
_CONNECTING = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.NameResolutionError)
_INNERMOST = (*_CONNECTING, http.client.IncompleteRead)
"""What these wrap says less than they do; urllib3 has heirs of `IncompleteRead`."""
_WRAPPERS = (
    requests.ConnectionError, requests.exceptions.ChunkedEncodingError, urllib3.exceptions.HTTPError,
    RetriesExceeded,
)  # fmt: skip
"""These say less than what they wrap."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PROXY_REFUSED = re.compile(
    r"(?:Tunnel connection failed: |Proxy CONNECT failed: HTTP/\S+ )(\d{3})\b", re.ASCII
)
"""How http.client and geventhttpclient begin when a proxy makes no tunnel."""
# It begins where a word does: to begin at any slash would take quadratic time in a word without a library.
_LIBRARY = re.compile(r"(?<![^\s,:])([^\s/,:]*)/[^\s,:]*/site-packages/")
"""The folder of a library, with the start of its word, such as a quotation mark."""
_TRUNCATED = ("Incomplete response", "('Invalid EOF state'", "Response ended prematurely")
"""How geventhttpclient and urllib3 begin when a response has ended too soon."""
_CLOSED = "connection closed"
"""How geventhttpclient begins when there is no response."""
_MOST_LINKS = 5


def classify(exception: object, status: int, timeout_s: float) -> tuple[int, str]:
    """The outcome of a request that failed, as an index, and why, in one line.

    Args:
        exception: what the client tells of.
        status: the status of the answer; 0 without one.
        timeout_s: the limit of the spec.
    """
    if not isinstance(exception, BaseException):
        return FAILED_CHECK, _strip(str(exception))
    outcome, error = _find_innermost(exception)
    if _is_truncated(error):
        return DISCONNECTED, CUT_SHORT
    if outcome == UNEXPECTED_STATUS:
        return outcome, explain_status(status or getattr(error, "code", 0))
    if outcome == FAILED_CHECK:
        text = _strip(str(error))
        return outcome, text if type(error) is CatchResponseError and text else _name(error, text)
    known = str(error) if isinstance(error, RedirectFailureError) else _explain_proxy(error)
    return outcome, known or explain_error(outcome, error, explain_timeout(timeout_s))


def _find_innermost(exception: BaseException) -> tuple[int, BaseException]:
    """The outcome, and the innermost exception that says something of it."""
    error = exception
    for _ in range(_MOST_LINKS):
        outcome = _find_outcome(error)
        inner = _find_inner(error)
        is_last = isinstance(error, _INNERMOST) or _is_truncated(error)
        if is_last or inner is None or not isinstance(error, _WRAPPERS):
            break
        error = inner
    return outcome, error


def _find_outcome(error: BaseException) -> int:
    if isinstance(error, HTTPParseError) and str(error).startswith(_CLOSED):
        return DISCONNECTED
    if isinstance(error, _CONNECTING):
        return CONNECT_ERROR
    return next((found for kinds, found in _BY_TYPE if isinstance(error, kinds)), FAILED_CHECK)


def _is_truncated(error: BaseException) -> bool:
    """Whether a response began and did not end."""
    if isinstance(error, http.client.IncompleteRead):
        return not isinstance(error, urllib3.exceptions.InvalidChunkLength)
    is_told = isinstance(error, HTTPParseError | urllib3.exceptions.ProtocolError)
    return is_told and str(error).startswith(_TRUNCATED)


def _find_inner(error: BaseException) -> BaseException | None:
    for name in ("original", "reason"):
        if isinstance(inner := getattr(error, name, None), BaseException):
            return inner
    return error.__cause__ or error.__context__


def _explain_proxy(error: BaseException) -> str:
    """The reason of an error with which a proxy refuses a tunnel; empty if it is another one."""
    refused = _PROXY_REFUSED.match(str(error)) if isinstance(error, OSError) else None
    return explain_proxy_refusal(int(refused[1])) if refused else ""


def _strip(text: str) -> str:
    """Strip what differs from worker to worker: addresses of objects, and folders of libraries."""
    return _LIBRARY.sub(r"\1", _ADDRESS.sub("", text))


def _name(error: BaseException, text: str) -> str:
    return f"{type(error).__name__}: {text}".rstrip(": ")
