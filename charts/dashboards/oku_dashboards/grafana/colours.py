"""Colours by meaning, the same in every panel; Grafana's own names, which suit both themes."""

from collections.abc import Mapping

from oku_core.accounting.outcome import NotSentCause, Outcome
from oku_core.accounting.run_state import RunState
from oku_core.thresholds.threshold_summary import ThresholdVerdict

GOOD = "green"
CAUTION = "orange"
BAD = "red"
PLAIN = "blue"
FAINT = "#8e8e99"
"""Grey: Grafana's palette has none."""

OUTCOME_COLOURS: Mapping[Outcome, str] = {
    Outcome.OK: "green",
    Outcome.UNEXPECTED_STATUS: "yellow",
    Outcome.TIMEOUT: "orange",
    Outcome.CONNECT_ERROR: "red",
    Outcome.DISCONNECTED: "purple",
    Outcome.PROTOCOL_ERROR: "light-blue",
    Outcome.NOT_SENT: FAINT,
    Outcome.LOST: "dark-red",
    Outcome.FAILED_CHECK: "dark-yellow",
    Outcome.EXCEPTION: "dark-purple",
}

CAUSE_COLOURS: Mapping[NotSentCause, str] = {
    NotSentCause.IN_FLIGHT_CAP: "orange",
    NotSentCause.LATE: "yellow",
    NotSentCause.NOT_DEALT: "purple",
}

STATE_COLOURS: Mapping[RunState, str] = {
    RunState.PENDING: FAINT,
    RunState.RUNNING: PLAIN,
    RunState.PAUSING: CAUTION,
    RunState.PAUSED: CAUTION,
    RunState.TEARING_DOWN: PLAIN,
    RunState.COMPLETED: PLAIN,
    RunState.CANCELLING: CAUTION,
    RunState.CANCELLED: CAUTION,
    RunState.FAILED: BAD,
}
"""No state is good by itself: a run may be complete without a single request that was ok."""

VERDICT_COLOURS: Mapping[ThresholdVerdict, str] = {
    ThresholdVerdict.PASSED: GOOD,
    ThresholdVerdict.FAILED: BAD,
    ThresholdVerdict.UNDECIDED: CAUTION,
}

PART_COLOURS: Mapping[str, str] = {
    "accounted": "green",
    "leased": "blue",
    "pending": FAINT,
    "unused": "#46464d",
    "again": "orange",
}
"""The parts of the request space."""

QUANTILE_COLOURS: Mapping[str, str] = {
    "p50_ms": "light-blue",
    "p90_ms": "blue",
    "p99_ms": "orange",
    "p99_9_ms": "red",
}

DUE_COLOURS: Mapping[str, str] = {"response_time_p99_ms": "purple", "lateness_p99_ms": "yellow"}
"""Of times that count from when requests were due."""

STATUS_COLOURS: Mapping[str, str] = {"^2": "green", "^3": "light-blue", "^4": "yellow", "^5": "red"}
"""By how a status begins, as a regular expression."""
