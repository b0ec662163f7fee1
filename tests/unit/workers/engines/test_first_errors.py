import errno
import logging
import ssl

import pytest

from oku_workers.engines.first_errors import FirstErrors
from oku_workers.executions.tally import CONNECT_ERROR, DISCONNECTED


def test_the_first_of_each_outcome_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It is told in one line with its cause: a count alone would not say what to mend."""
    errors = FirstErrors()
    with caplog.at_level(logging.WARNING):
        errors.report(DISCONNECTED, ConnectionResetError("over\nand  out"))
        errors.report(DISCONNECTED, ConnectionResetError("again"))
        errors.report(CONNECT_ERROR, "nobody listens")
        errors.report(CONNECT_ERROR, OSError())
    assert caplog.messages == [
        "first disconnected: ConnectionResetError: over and out",
        "first connect_error: nobody listens",
    ]


def test_a_long_story_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    """Servers can make an error as long as they like."""
    with caplog.at_level(logging.WARNING):
        FirstErrors().report(DISCONNECTED, ValueError("x" * 10_000))
    assert len(caplog.messages[0]) < 400


def test_another_spec_has_errors_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """What was told of one says nothing of the next."""
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            FirstErrors().report(CONNECT_ERROR, "refused")
    assert len(caplog.messages) == 2


def test_an_error_of_the_network_is_named_as_everybody_knows_it(caplog: pytest.LogCaptureFixture) -> None:
    """The library says that it cannot connect, not why; the numbers of TLS mean something else."""
    failed = OSError(errno.ECONNREFUSED, "Call failed")
    with caplog.at_level(logging.WARNING):
        FirstErrors().report(CONNECT_ERROR, failed)
        FirstErrors().report(CONNECT_ERROR, ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
        FirstErrors().report(CONNECT_ERROR, ssl.SSLError(1, "WRONG_VERSION_NUMBER"))
    assert caplog.messages == [
        f"first connect_error: Connection refused: {failed}",
        "first connect_error: ConnectionRefusedError: [Errno 111] Connection refused",
        "first connect_error: SSLError: WRONG_VERSION_NUMBER",
    ]
