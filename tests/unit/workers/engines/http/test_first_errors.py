import errno
import logging

import pytest

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED
from oku_core.http_client.error_reason import explain_error
from oku_workers.engines.http.first_errors import FirstErrors


def test_the_first_of_each_outcome_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It is told in one line, with the reason of the account and what the system said in addition."""
    errors = FirstErrors()
    with caplog.at_level(logging.WARNING):
        errors.report(DISCONNECTED, "reset", ConnectionResetError("over\nand  out"))
        errors.report(DISCONNECTED, "reset", ConnectionResetError("again"))
        errors.report(CONNECT_ERROR, "the URL cannot be asked for", "the URL cannot be asked for")
        errors.report(CONNECT_ERROR, "refused", OSError())
    assert caplog.messages == [
        "first disconnected: reset; ConnectionResetError: over and out",
        "first connect_error: the URL cannot be asked for",
    ]


def test_the_log_has_the_host_and_the_port_that_a_reason_leaves_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With several targets, they say which is meant."""
    error = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 80)")
    reason = explain_error(CONNECT_ERROR, error, "")
    with caplog.at_level(logging.WARNING):
        FirstErrors().report(CONNECT_ERROR, reason, error)
        FirstErrors().report(DISCONNECTED, "the server hung up", EOFError())
    assert caplog.messages == [
        f"first connect_error: refused; ConnectionRefusedError: {error}",
        "first disconnected: the server hung up; EOFError",
    ]


def test_a_long_story_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    """Servers can make an error as long as they like."""
    with caplog.at_level(logging.WARNING):
        FirstErrors().report(DISCONNECTED, "reset", ValueError("x" * 10_000))
    assert len(caplog.messages[0]) < 400


def test_another_spec_has_errors_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """What was told of one says nothing of the next."""
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            FirstErrors().report(CONNECT_ERROR, "refused", "refused")
    assert len(caplog.messages) == 2
