"""Logs the first failure of each outcome with its reason and with what the system said of it.

The account has the reasons and their counts, without host, port and numbers; these stand in the log alone.
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
        """Note that a request has failed.

        Args:
            outcome: what it counts as, as an index.
            reason: why, as the account says it.
            error: the exception that it is made from, or a text.
        """
        if outcome in self._reported:
            return
        self._reported.add(outcome)
        text = f"{reason}{_describe(error)}"[:_LONGEST]  # cut last: half a URL could not be redacted
        _log.warning("first %s: %s", OUTCOMES[outcome], text, extra={"outcome": OUTCOMES[outcome]})


def _describe(error: object) -> str:
    """What an exception says, as the end of a sentence; a text is the reason itself."""
    if not isinstance(error, BaseException):
        return ""
    said = " ".join(redact(str(error)).split())
    return f"; {type(error).__name__}: {said}" if said else f"; {type(error).__name__}"
