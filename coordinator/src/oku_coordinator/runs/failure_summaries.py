"""Why requests of a run failed, as summaries and ticks say it: the most frequent reasons first."""

from collections.abc import Iterable, Mapping

from oku_core.accounting.failure_reason import ReasonCount
from oku_core.accounting.outcome import OUTCOMES
from oku_core.results.summary import FailureSummary
from oku_core.spec.description import RequestLines
from oku_core.spec.spec import Spec

MOST_FAILURES, MOST_IN_TICK = 100, 3
"""How many a summary has, and how many a tick."""


def build_failures(
    spec: Spec,
    reasons: Iterable[tuple[str, ReasonCount]],
    most: int = MOST_FAILURES,
    tracebacks: Mapping[str, str] | None = None,
) -> list[FailureSummary]:
    """The failures of all phases together, by target, outcome and reason.

    Args:
        spec: of the run.
        reasons: of each part of its account, with the names of their targets.
        most: how many to give.
        tracebacks: where exceptions of user code came from, by their reasons.
    """
    counts: dict[tuple[str, int, str], ReasonCount] = {}
    for target, count in reasons:
        known = counts.get((target, *count.key))
        counts[target, *count.key] = count if known is None else known.join(count)
    if not counts:
        return []
    ranked = sorted(counts.items(), key=lambda item: (-item[1].requests, item[0]))
    # Summaries go into reports and to Loki.
    lines = None if spec.runs_user_code else RequestLines(spec, hides_queries=True)
    return [
        FailureSummary(
            target=target,
            outcome=OUTCOMES[outcome],
            reason=reason,
            requests=count.requests,
            first_index=count.first if count.first >= 0 else None,
            last_index=count.last if count.first >= 0 else None,
            sample=lines.build(count.first).text if lines and count.first >= 0 else "",
            traceback=(tracebacks or {}).get(reason, ""),
        )
        for (target, outcome, reason), count in ranked[:most]
    ]
