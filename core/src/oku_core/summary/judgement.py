"""Judges a run at a glance, as its colour shows it wherever its state stands: good, bad, or worth a look."""

from enum import StrEnum

from oku_core.accounting.run_state import RunState
from oku_core.summary.summary import Summary, is_unbalanced
from oku_core.summary.tick import Tick
from oku_core.thresholds.threshold_summary import ThresholdVerdict


class Judgement(StrEnum):
    """The meaning of a run's colour."""

    GOOD = "good"
    """It is complete, its account balances, every request was ok, and no threshold contradicts."""
    NEUTRAL = "neutral"
    """It goes on, and every request so far was ok."""
    CAUTION = "caution"
    """Some requests were not ok, or it has not come to its end."""
    BAD = "bad"
    """It has failed, its account does not balance, nothing was ok, or a threshold has failed."""


def judge_run(summary: Summary) -> Judgement:
    """Judge a run by its whole summary."""
    if is_unbalanced(summary) or summary.verdict is ThresholdVerdict.FAILED:
        return Judgement.BAD
    judgement = judge_counts(summary.state, ok=summary.outcomes.ok, ended=summary.accounted)
    is_undecided = summary.verdict is ThresholdVerdict.UNDECIDED
    return Judgement.CAUTION if is_undecided and judgement is Judgement.GOOD else judgement


def judge_tick(tick: Tick) -> Judgement:
    """Judge a run by a second of it."""
    if any(threshold.verdict is ThresholdVerdict.FAILED for threshold in tick.thresholds):
        return Judgement.BAD
    outcomes = tick.sample.outcomes_so_far
    return judge_counts(tick.state, ok=outcomes[0], ended=sum(outcomes))


def judge_counts(state: RunState, *, ok: int, ended: int) -> Judgement:
    """Judge a run by its state, and by how many of the requests that have ended were ok."""
    if state is RunState.FAILED or ((ended or state is RunState.COMPLETED) and not ok):
        return Judgement.BAD
    if ok < ended:
        return Judgement.CAUTION
    if state is RunState.COMPLETED and ok:
        return Judgement.GOOD
    return Judgement.NEUTRAL if state is RunState.RUNNING else Judgement.CAUTION
