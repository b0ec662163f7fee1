"""Says once for each outcome, in the worker's log, what went wrong first: the counts do not tell it."""

import logging

from oku_core.accounting.outcome import OUTCOMES
from oku_core.process.redaction import redact

_LONGEST = 300

_log = logging.getLogger(__name__)


class FirstErrors:
    """Belongs to one engine, and so to one spec."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def tell(self, outcome: int, reason: object) -> None:
        """A request ended with an outcome (as an index) for a reason, an exception or a text."""
        if outcome in self._told:
            return
        self._told.add(outcome)
        name = f"{type(reason).__name__}: " if isinstance(reason, BaseException) else ""
        text = f"{name}{' '.join(redact(str(reason)).split())}"[:_LONGEST]  # cut, a URL is none any more
        _log.warning("first %s: %s", OUTCOMES[outcome], text, extra={"outcome": OUTCOMES[outcome]})
