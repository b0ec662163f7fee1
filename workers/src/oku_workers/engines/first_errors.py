"""Logs once for each outcome what went wrong first, which the counts do not tell."""

import logging

from oku_core.accounting.outcome import OUTCOMES
from oku_core.process.redaction import redact

_LONGEST = 300

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
        name = f"{type(reason).__name__}: " if isinstance(reason, BaseException) else ""
        text = f"{name}{' '.join(redact(str(reason)).split())}"[
            :_LONGEST
        ]  # cut last: half a URL could not be redacted
        _log.warning("first %s: %s", OUTCOMES[outcome], text, extra={"outcome": OUTCOMES[outcome]})
