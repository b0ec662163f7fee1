"""Accounts of outcomes as tests write them: the counts that matter, by name."""

from collections.abc import Sequence

from oku_core.accounting.outcome import OUTCOMES, Outcome, ReasonCount


def make_counts(ok: int = 0, **others: int) -> list[int]:
    """Build counts in the order of `OUTCOMES`; those that are not named are zero."""
    counts = {Outcome.OK: ok, **{Outcome(name): count for name, count in others.items()}}
    return [counts.get(outcome, 0) for outcome in OUTCOMES]


def make_reasons(outcomes: Sequence[int], reason: str = "refused") -> list[ReasonCount]:
    """The reasons of counts of outcomes, as if all that failed had one; at the first position."""
    return [
        ReasonCount(place, reason, count, 0, 0) for place, count in enumerate(outcomes) if place and count
    ]
