"""Logs the first failure of each outcome, with its reason and the error of the system.

The account counts reasons without host, port and numbers; only the log has these.
"""

import logging

from oku_core.accounting.outcome import OUTCOMES
from oku_core.process.redaction import redact

_LONGEST = 300

_log = logging.getLogger(__name__)


class FirstErrors:
    """The first errors of one engine, and so of one spec."""

    def __init__(self) -> None:
        self._reported: set[int] = set()

    def report(self, outcome: int, reason: str, error: object) -> None:
        """Log a failure if it is the first of its outcome.

        Args:
            outcome: of the request, as an index.
            reason: as the account has it.
            error: the exception that it is made from, or a text.
        """
        if outcome in self._reported:
            return
        self._reported.add(outcome)
        text = f"{reason}{_describe(error)}"[:_LONGEST]  # cut last: half a URL could not be redacted
        _log.warning("first %s: %s", OUTCOMES[outcome], text, extra={"outcome": OUTCOMES[outcome]})


def _describe(error: object) -> str:
    """Describe an exception, as the end of a sentence; empty for a text, which is the reason itself."""
    if not isinstance(error, BaseException):
        return ""
    said = " ".join(redact(str(error)).split())
    return f"; {type(error).__name__}: {said}" if said else f"; {type(error).__name__}"
