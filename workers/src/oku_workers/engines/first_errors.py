"""Logs once for each outcome what went wrong first, which the counts do not tell."""

import errno
import logging
import os

from oku_core.accounting.outcome import OUTCOMES
from oku_core.process.redaction import redact

_LONGEST = 300
_OF_THE_NETWORK = {
    errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT, errno.EPIPE
}  # fmt: skip
"""An error of TLS has a number, too, which means something else."""

_log = logging.getLogger(__name__)


class FirstErrors:
    """The first errors of one engine, and so of one spec."""

    def __init__(self) -> None:
        self._reported: set[int] = set()

    def report(self, outcome: int, reason: object) -> None:
        """Note that a request ended with an outcome (as an index) for a reason, an exception or a text."""
        if outcome in self._reported:
            return
        self._reported.add(outcome)
        text = f"{_name(reason)}{' '.join(redact(str(reason)).split())}"
        text = text[:_LONGEST]  # cut last: half a URL could not be redacted
        _log.warning("first %s: %s", OUTCOMES[outcome], text, extra={"outcome": OUTCOMES[outcome]})


def _name(reason: object) -> str:
    """What an error is called: as the system does if it is the network's, and the text does not say so."""
    if not isinstance(reason, BaseException):
        return ""
    number = reason.errno if isinstance(reason, OSError) else None
    if number in _OF_THE_NETWORK and os.strerror(number) not in str(reason):
        return f"{os.strerror(number)}: "
    return f"{type(reason).__name__}: "
