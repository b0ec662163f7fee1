"""Why requests of a run failed, as its summary says it: the most frequent reasons first."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from oku_coordinator.ledger.storage.run_account import Account, PartName
from oku_core.accounting.outcome import OUTCOMES
from oku_core.results.summary import FailureSummary
from oku_core.spec.request_line import RequestLines
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_core.accounting.failure_reason import ReasonCount

MOST_FAILURES = 100
"""How many a summary has."""


def build_failures(spec: Spec, accounts: Mapping[PartName, Account]) -> list[FailureSummary]:
    """The failures of all phases together, by target, outcome and reason."""
    counts: dict[tuple[str, int, str], ReasonCount] = {}
    for (_, target), account in accounts.items():
        for key, count in account.reasons.items():
            known = counts.get((target, *key))
            counts[target, *key] = count if known is None else known.join(count)
    if not counts:
        return []
    ranked = sorted(counts.items(), key=lambda item: (-item[1].requests, item[0]))
    lines = RequestLines(spec)
    return [
        FailureSummary(
            target=target,
            outcome=OUTCOMES[outcome],
            reason=reason,
            requests=count.requests,
            first_index=count.first if count.first >= 0 else None,
            last_index=count.last if count.first >= 0 else None,
            sample=lines.build(count.first).text if count.first >= 0 else "",
        )
        for (target, outcome, reason), count in ranked[:MOST_FAILURES]
    ]
