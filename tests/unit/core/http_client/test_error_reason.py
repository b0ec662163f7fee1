"""The catalogue of reasons: one text for one cause, whatever exception brings it."""

import errno
import os
import socket
import ssl

import pytest

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, LONGEST_REASON, PROTOCOL_ERROR, TIMEOUT
from oku_core.http_client.connector import ProxyError
from oku_core.http_client.error_reason import (
    CUT_SHORT,
    ReasonError,
    explain_error,
    explain_proxy_refusal,
    explain_status,
    explain_timeout,
)
from oku_core.http_client.redirects import RedirectError
from oku_core.http_client.response_reader import MalformedResponseError
from oku_core.process.redaction import hide

LATE = explain_timeout(10.0)


def build_certificate_error(code: int, message: str = "") -> ssl.SSLCertVerificationError:
    """What OpenSSL says of a certificate."""
    error = ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED")
    error.verify_code, error.verify_message = code, message
    return error


def wrap(error: BaseException) -> Exception:
    """An error of a library about one of the system."""
    wrapper = Exception("Cannot connect to host user:secret@h:80 ssl:default")
    wrapper.__cause__ = error
    return wrapper


@pytest.mark.parametrize(
    ("outcome", "error", "reason"),
    [
        (
            CONNECT_ERROR,
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('::1', 9)"),
            "refused",
        ),
        (CONNECT_ERROR, ProxyError(407), "the proxy has answered with status 407"),
        (CONNECT_ERROR, ProxyError(), "the proxy hung up"),
        (CONNECT_ERROR, ProxyError(ConnectionResetError(errno.ECONNRESET, "x")), "proxy: reset"),
        (CONNECT_ERROR, ProxyError(MalformedResponseError("Bad 1")), "proxy: not HTTP: Bad 1"),
        (DISCONNECTED, ConnectionResetError(errno.ECONNRESET, "reset"), "reset"),
        (DISCONNECTED, BrokenPipeError(errno.EPIPE, "broken"), "reset"),
        (CONNECT_ERROR, OSError(errno.EHOSTUNREACH, "no route"), "unreachable"),
        (CONNECT_ERROR, OSError(errno.EMFILE, "files"), "too many open files"),
        (CONNECT_ERROR, OSError(errno.EACCES, "no"), os.strerror(errno.EACCES).lower()),
        (CONNECT_ERROR, socket.gaierror(socket.EAI_NONAME, "not known"), "name not found"),
        (CONNECT_ERROR, socket.gaierror(socket.EAI_AGAIN, "again"), "no answer from the name server"),
        (CONNECT_ERROR, build_certificate_error(18), "certificate not trusted: self-signed"),
        (CONNECT_ERROR, build_certificate_error(10), "certificate not trusted: expired"),
        (CONNECT_ERROR, build_certificate_error(62), "certificate not trusted: host name does not match"),
        (CONNECT_ERROR, build_certificate_error(99, "odd"), "certificate not trusted: odd"),
        (PROTOCOL_ERROR, MalformedResponseError("Expected HTTP/"), "not HTTP: Expected HTTP/"),
        (TIMEOUT, TimeoutError(), "no answer within 10s"),
        (DISCONNECTED, ConnectionError("whatever 17"), "the server hung up"),
        (DISCONNECTED, ConnectionResetError("Connection lost"), "the server hung up"),
        (DISCONNECTED, ReasonError(CUT_SHORT), "the response was cut short"),
        (CONNECT_ERROR, ConnectionResetError(), "TLS: unexpected eof while reading"),
        (CONNECT_ERROR, RedirectError("more than 3 redirections"), "more than 3 redirections"),
    ],
)
def test_a_cause_has_one_text_however_it_is_wrapped(outcome: int, error: Exception, reason: str) -> None:
    """Libraries put errors of the system into their own."""
    assert explain_error(outcome, error, LATE) == reason
    assert explain_error(outcome, wrap(error), LATE) == reason


def test_a_reason_has_no_address_and_no_secret() -> None:
    """Two errors of a kind are one reason, and nothing of a URL is in it."""
    texts = {
        explain_error(CONNECT_ERROR, ValueError(f"cannot ask http://a:secret@h{n}:80/{n} [{n}]"), LATE)
        for n in range(9)
    }
    assert all("secret" not in text and len(text) <= 120 and text.isprintable() for text in texts)


def test_what_a_bracket_opens_is_left_out_until_another_closes_it_or_its_line_ends() -> None:
    """It is what varies; brackets within brackets are not counted."""
    error = ValueError("no [1, (2) way ((x\nbut (this] one")
    assert explain_error(CONNECT_ERROR, error, LATE) == "no way but one"


def test_a_status_is_named() -> None:
    """It is what a user looks for first."""
    assert explain_status(503) == "status 503"


def test_a_proxy_that_refuses_is_named_with_its_status() -> None:
    """The proxy, not the target, has said so."""
    assert explain_proxy_refusal(407) == "the proxy has answered with status 407"


def test_a_target_that_repeats_a_secret_does_not_spread_it() -> None:
    """Not even a part of it, where the reason is cut."""
    hide("reason-hunter2-0815")
    for text in ("unexpected reason-hunter2-0815", "x" * (LONGEST_REASON - 15) + "reason-hunter2-0815"):
        assert "reas" not in explain_error(PROTOCOL_ERROR, MalformedResponseError(text), LATE)
        assert "reas" not in explain_error(CONNECT_ERROR, ValueError(text), LATE)
