"""For how long nothing may be ok before a run ends."""

from oku_core.errors import format_value
from oku_core.spec.values.quantity import parse_duration_s
from oku_core.spec.values.scalar import parse_scalar

NEVER = "never"
"""Says that a run goes on however long nothing is ok."""

_LEAST, _MOST = "1s", "1h"


def parse_stop_when_down(value: object) -> float:
    """Parse a duration between 1 s and 1 h, in seconds; `never` is 0, as is 0 itself."""
    text = parse_scalar(value).strip()
    if text.lower() == NEVER:
        return 0.0
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        seconds = -1.0
    if seconds == 0 or parse_duration_s(_LEAST) <= seconds <= parse_duration_s(_MOST):
        return seconds
    raise ValueError(f"{format_value(text)} is neither a duration between {_LEAST} and {_MOST} nor {NEVER}")
