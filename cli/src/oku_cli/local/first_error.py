"""Finds in the logs of a local run's workers why requests failed, which the account does not tell."""

import re
from pathlib import Path

import msgspec

from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import Summary

_ANSWERED = {Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.FAILED_CHECK}
_UNANSWERED = [outcome for outcome in Outcome if outcome not in _ANSWERED]
_TAIL_BYTES = 1 << 18
_LINE = re.compile(r"(?P<time>\S+) warning +first (?P<outcome>[a-z_]+): (?P<reason>.+) worker=\S+ outcome=")
"""As `oku_workers.engines.first_errors` words it, once for each outcome and worker."""


def find_first_error(logs: Path, summary: Summary) -> str | None:
    """The reason of a request with the outcome that most of those had that were not answered.

    Args:
        logs: the folder with the logs of the workers.
        summary: of the run, which is over.
    """
    counts = msgspec.structs.asdict(summary.outcomes)
    most = max(_UNANSWERED, key=lambda outcome: counts[outcome])
    if not counts[most] or summary.started_at is None:
        return None
    for log in sorted(logs.glob("worker-*.log")):
        for line in _read_tail(log).splitlines():
            found = _LINE.match(line)
            # Both times are ISO 8601 in UTC to the millisecond, which sort as text.
            if found and found["outcome"] == most and found["time"] >= summary.started_at:
                return _add_advice(found["reason"])
    return None


def _add_advice(reason: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return f"{reason}; --cacert trusts another issuer, --insecure any certificate"
    return reason


def _read_tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read().decode(errors="replace")
