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
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.http_client.error_reason import explain_error, explain_status, explain_timeout

OK, UNEXPECTED_STATUS, TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, FAILED_CHECK = map(
    OUTCOMES.index,
    (
        Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.TIMEOUT, Outcome.CONNECT_ERROR, Outcome.DISCONNECTED,
        Outcome.PROTOCOL_ERROR, Outcome.FAILED_CHECK,
    ),
)  # fmt: skip

_BY_TYPE: tuple[tuple[tuple[type[BaseException], ...], int], ...] = (
    ((RedirectFailureError, requests.TooManyRedirects), PROTOCOL_ERROR),
    ((requests.HTTPError, LocustBadStatusCode), UNEXPECTED_STATUS),
    ((CatchResponseError, ResponseError, AssertionError), FAILED_CHECK),
    (
        (requests.Timeout, TimeoutError, Timeout, urllib3.exceptions.TimeoutError),
        TIMEOUT,
    ),
    (
        # An incomplete body comes with these, too.
        (
            ConnectionResetError, BrokenPipeError, ConnectionAbortedError, HTTPConnectionClosed,
            http.client.RemoteDisconnected, http.client.IncompleteRead, urllib3.exceptions.IncompleteRead,
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
_WRAPPERS = (requests.ConnectionError, urllib3.exceptions.HTTPError, RetriesExceeded)
"""These say less than what they wrap."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PROXY_REFUSED = re.compile(
    r"(?:Tunnel connection failed: |Proxy CONNECT failed: HTTP/\S+ )(\d{3})\b", re.ASCII
)
"""How http.client and geventhttpclient begin when a proxy makes no tunnel."""
# It begins where a word does: to begin at any slash would take quadratic time in a word without a library.
_LIBRARY = re.compile(r"(?<![^\s,:])([^\s/,:]*)/[^\s,:]*/site-packages/")
"""The folder of a library, with the start of its word, such as a quotation mark."""
_TRUNCATED = ("Incomplete response", "connection closed")
"""How begins what geventhttpclient says of an answer that ends too soon."""
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
    outcome, error = _look_into(exception)
    if outcome == UNEXPECTED_STATUS:
        return outcome, explain_status(status or getattr(error, "code", 0))
    if outcome == FAILED_CHECK:
        text = _strip(str(error))
        return outcome, text if type(error) is CatchResponseError and text else _name(error, text)
    known = str(error) if isinstance(error, RedirectFailureError) else _explain_proxy(error)
    return outcome, known or explain_error(outcome, error, explain_timeout(timeout_s))


def _look_into(exception: BaseException) -> tuple[int, BaseException]:
    """The outcome, and the innermost exception that says something of it."""
    error = exception
    for _ in range(_MOST_LINKS):
        outcome = _find_outcome(error)
        inner = _find_inner(error)
        if isinstance(error, _CONNECTING) or inner is None or not isinstance(error, _WRAPPERS):
            break
        error = inner
    return outcome, error


def _find_outcome(error: BaseException) -> int:
    if isinstance(error, HTTPParseError) and str(error).startswith(_TRUNCATED):
        return DISCONNECTED
    if isinstance(error, _CONNECTING):
        return CONNECT_ERROR
    return next((found for kinds, found in _BY_TYPE if isinstance(error, kinds)), FAILED_CHECK)


def _find_inner(error: BaseException) -> BaseException | None:
    for name in ("original", "reason"):
        if isinstance(inner := getattr(error, name, None), BaseException):
            return inner
    return error.__cause__ or error.__context__


def _explain_proxy(error: BaseException) -> str:
    """The reason of an error with which a proxy refuses a tunnel; empty if it is another one."""
    refused = _PROXY_REFUSED.match(str(error)) if isinstance(error, OSError) else None
    return f"the proxy has answered with status {refused[1]}" if refused else ""


def _strip(text: str) -> str:
    """Strip what differs from worker to worker: addresses of objects, and folders of libraries."""
    return _LIBRARY.sub(r"\1", _ADDRESS.sub("", text))


def _name(error: BaseException, text: str) -> str:
    return f"{type(error).__name__}: {text}".rstrip(": ")
