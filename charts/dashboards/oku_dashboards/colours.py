"""Colours by meaning, the same in every panel; Grafana's own names, which suit both themes."""

from collections.abc import Mapping

from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import RunState

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
}

STATE_COLOURS: Mapping[RunState, str] = {
    RunState.PENDING: FAINT,
    RunState.RUNNING: PLAIN,
    RunState.PAUSING: CAUTION,
    RunState.PAUSED: CAUTION,
    RunState.COMPLETED: GOOD,
    RunState.CANCELLING: CAUTION,
    RunState.CANCELLED: CAUTION,
    RunState.FAILED: BAD,
}

PART_COLOURS: Mapping[str, str] = {
    "accounted": "green",
    "leased": "blue",
    "pending": FAINT,
    "again": "orange",
}
"""The parts of the request space."""

QUANTILE_COLOURS: Mapping[str, str] = {
    "p50_ms": "light-blue",
    "p90_ms": "blue",
    "p99_ms": "orange",
    "p99_9_ms": "red",
}

STATUS_COLOURS: Mapping[str, str] = {"^2": "green", "^3": "light-blue", "^4": "yellow", "^5": "red"}
"""By how a status begins, as a regular expression."""
