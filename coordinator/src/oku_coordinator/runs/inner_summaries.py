"""Makes the summaries of inner requests: those that user code has made within iterations, by name."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.run_account import Account, RunAccount, sum_accounts
from oku_coordinator.runs.account_figures import measure_sent_rps
from oku_core.accounting.outcome import OUTCOMES, build_outcome_counts
from oku_core.results.summary import FailureSummary, InnerSummary, OutcomeCounts, build_latency_summary
from oku_core.spec.load import WARM_UP

MOST_FAILURES = 20
"""How many failures each has."""


def list_inner_names(accounts: RunAccount) -> list[str]:
    """The names of the inner requests of a run, sorted."""
    return sorted({name for _, name in accounts.inner})


def build_inner_requests(accounts: RunAccount, measured_s: float) -> list[InnerSummary]:
    """The summaries of all names, sorted.

    Args:
        accounts: of the run.
        measured_s: for how many seconds it has been active after its warm-up.
    """
    return [_build(name, accounts, measured_s) for name in list_inner_names(accounts)]


def _build(name: str, accounts: RunAccount, measured_s: float) -> InnerSummary:
    parts = {phase: account for (phase, each), account in accounts.inner.items() if each == name}
    account = sum_accounts(parts.values())
    measured = account
    if WARM_UP in parts:
        measured = sum_accounts(part for phase, part in parts.items() if phase != WARM_UP)
    return InnerSummary(
        name=name,
        requests=account.accounted,
        outcomes=OutcomeCounts(**build_outcome_counts(account.outcomes)),
        statuses=dict(sorted(account.statuses.items())),
        bytes_received=account.bytes_received,
        rate_rps=measure_sent_rps(measured.outcomes, measured_s),
        latency_ms=build_latency_summary(measured.latency),
        failures=list(_iter_failures(account)),
    )


def _iter_failures(account: Account) -> Iterable[FailureSummary]:
    """The reasons, the most frequent first; the indices are those of the iterations."""
    ranked = sorted(account.reasons.values(), key=lambda count: (-count.requests, count.key))
    for count in ranked[:MOST_FAILURES]:
        yield FailureSummary(
            outcome=OUTCOMES[count.outcome],
            reason=count.reason,
            requests=count.requests,
            first_index=count.first if count.first >= 0 else None,
            last_index=count.last if count.first >= 0 else None,
        )
