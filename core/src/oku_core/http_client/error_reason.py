"""Why a request failed, as a short text of a bounded catalogue, made from what a client has met.

A reason has no host, port, path or index in it, and so no secret, and the same cause is the same text with
every client of Oku. Other causes have the text of the system or the library.
"""

import errno
import os
import re
import socket
import ssl

from oku_core.accounting.outcome import (
    CONNECT_ERROR,
    DISCONNECTED,
    LONGEST_REASON,
    PROTOCOL_ERROR,
    STATUS,
    TIMEOUT,
    UNTRUSTED,
)
from oku_core.data.data_format import DataError
from oku_core.http_client.connector import ProxyError
from oku_core.http_client.response_reader import MalformedResponseError
from oku_core.process.redaction import redact

HUNG_UP = "the server hung up"
CUT_SHORT = "the response was cut short"
UNASKED = "not HTTP: a response without a request"
HEADERS_TOO_LONG = "the headers of the request are too long"
MALFORMED_ANSWER = "not HTTP/2: a malformed response"
NO_HTTP2 = "the server does not speak HTTP/2"
STREAM_REFUSED = "stream refused"
NO_URL = "the URL cannot be asked for"
NO_ROW = "the row of the data cannot be read"
TLS = "TLS: "
"""How the reasons of a handshake that fails begin, but for those about certificates."""
PROXY_REFUSED = "the proxy has answered with status "
"""How the reasons of a proxy that makes no tunnel begin."""
PROXY_HUNG_UP, PROXY_FAULT = "the proxy hung up", "proxy: "
"""The reason, and how the other reasons begin, of a proxy that does not answer."""
REDIRECTED_TOO_OFTEN = "more than"
"""How the reason of too many redirections begins."""
REDIRECTION = "redirection"
"""Occurs in the reason of each redirection that is not followed."""
_NAME_NOT_FOUND, _NO_NAME_SERVER = "name not found", "no answer from the name server"
_SYSTEM = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EPIPE: "reset",
    errno.ECONNABORTED: "reset",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.ETIMEDOUT: "no answer to connecting",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files",
    errno.EADDRNOTAVAIL: "no local port is free",
    errno.ENOBUFS: "no buffer space",
}
_CERTIFICATE = {
    9: "not valid yet",
    10: "expired",
    18: "self-signed",
    19: "self-signed authority",
    20: "unknown authority",
    21: "unknown authority",
    23: "revoked",
    62: "host name does not match",
    64: "address does not match",
}
"""The codes of OpenSSL, `X509_V_ERR_…` in x509_vfy.h."""
_END_IN_HANDSHAKE = f"{TLS}unexpected eof while reading"
"""The text of OpenSSL; event loops raise a `ConnectionResetError` without a number instead."""
_NO_PROTOCOL = frozenset({"TLSV1_ALERT_NO_APPLICATION_PROTOCOL", "NO_APPLICATION_PROTOCOL"})
"""Reasons of OpenSSL when a server accepts no offered protocol; only HTTP/2 is offered."""
_LINKS = ("certificate_error", "os_error", "__cause__")
"""Where libraries keep the error that theirs is about."""
_MOST_LINKS = 5
_VARYING = re.compile(r"[\[(][^\])\n]*[\])]?|'[^']*'|\"[^\"]*\"|\b\d[\d.:]*\b|0x[0-9a-fA-F]+")
"""What differs between two errors of one kind: addresses, numbers, quoted text. An unclosed bracket extends
to the end of its line: to backtrack from each of many would take quadratic time."""


class ReasonError(Exception):
    """An error whose text is the reason of its request."""


def explain_timeout(timeout_s: float) -> str:
    """The reason of requests that have taken too long."""
    return f"no answer within {timeout_s:g}s"


def explain_status(status: int) -> str:
    """The reason of an answer with another status than was expected."""
    return f"{STATUS} {status}"


def explain_proxy_refusal(status: int) -> str:
    """The reason of a request for which a proxy makes no tunnel: a `connect_error`."""
    return f"{PROXY_REFUSED}{status}"


def explain_error(outcome: int, error: object, timeout: str) -> str:
    """The reason of a request that ended with an error, or with a text of ours.

    Args:
        outcome: what it counts as, as an index.
        error: an exception, or a reason.
        timeout: the reason of requests that have taken too long.
    """
    if outcome == TIMEOUT:
        return timeout
    if isinstance(error, DataError):
        return NO_ROW
    if isinstance(error, ReasonError) or not isinstance(error, BaseException):
        return _shorten(str(error))
    links = _list_links(error)
    for link in links:
        if reason := _explain_proxy(link) if isinstance(link, ProxyError) else _explain_known(link):
            return _shorten(reason)
    if outcome == DISCONNECTED:
        return HUNG_UP
    if outcome == CONNECT_ERROR and any(isinstance(link, ConnectionResetError) for link in links):
        text = _END_IN_HANDSHAKE
    else:
        text = _strip(str(error)) or type(error).__name__
    return _shorten(f"not HTTP: {text}" if outcome == PROTOCOL_ERROR else text)


def _list_links(error: BaseException) -> list[BaseException]:
    """An error and those that it is about, the innermost first."""
    links = [error]
    while len(links) < _MOST_LINKS:
        found = (getattr(links[-1], name, None) for name in _LINKS)
        following = next((link for link in found if isinstance(link, BaseException)), None)
        if following is None or following in links:
            break
        links.append(following)
    return links[::-1]


def _explain_known(error: BaseException) -> str | None:
    """The reason of an error that has a text of its own; None for all others."""
    if isinstance(error, socket.gaierror):
        return _NO_NAME_SERVER if error.errno == socket.EAI_AGAIN else _NAME_NOT_FOUND
    if isinstance(error, ssl.SSLError):
        return _explain_tls(error)
    if isinstance(error, MalformedResponseError):
        return f"not HTTP: {_strip(str(error), numbers=True)}"
    if isinstance(error, ReasonError):
        return str(error)
    if isinstance(error, OSError) and error.errno:
        return _SYSTEM.get(error.errno) or os.strerror(error.errno).lower()
    return None


def _explain_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = _CERTIFICATE.get(error.verify_code) or _strip(error.verify_message)
        return f"{UNTRUSTED}: {why}"
    if error.reason in _NO_PROTOCOL:
        return NO_HTTP2
    return f"{TLS}{(error.reason or _strip(str(error))).replace('_', ' ').lower()}"


def _explain_proxy(error: ProxyError) -> str:
    cause = error.cause
    if cause is None:
        return PROXY_HUNG_UP
    if isinstance(cause, int):
        return explain_proxy_refusal(cause)
    return f"{PROXY_FAULT}{_explain_known(cause) or _strip(str(cause))}"


def _strip(text: str, *, numbers: bool = False) -> str:
    """A text without the parts that vary from one request to the next."""
    shown = redact(text)
    return " ".join((shown if numbers else _VARYING.sub("", shown)).split())


def _shorten(text: str) -> str:
    printable = "".join(each if each.isprintable() else " " for each in text[:LONGEST_REASON])
    return printable.strip() or "unknown"
