"""Accounts of outcomes as tests write them: the counts that matter, by name."""

from oku_core.accounting.outcome import OUTCOMES, Outcome


def make_counts(ok: int = 0, **others: int) -> list[int]:
    """Build counts in the order of `OUTCOMES`; those that are not named are zero."""
    counts = {Outcome.OK: ok, **{Outcome(name): count for name, count in others.items()}}
    return [counts.get(outcome, 0) for outcome in OUTCOMES]
