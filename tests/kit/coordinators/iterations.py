"""What workers say of iterations of user code, and of the requests that these have made."""

from collections.abc import Sequence
from typing import Any

import msgspec
from tests.kit.coordinators.parts import build_histogram
from tests.kit.outcomes import make_counts, make_reasons

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import count_answered
from oku_core.messaging.checkpoint import Part
from oku_core.spec.spec import Engine, Spec

USER_CODE = Spec(requests=100, engine=Engine.PYTHON)
"""A run of 100 iterations; what it runs does not matter to the account."""


def build_iterations(ok: int = 0, second: int = 3, phase: str = "", **others: int) -> Part:
    """What came of iterations; those that ran to their end took a millisecond."""
    outcomes = make_counts(ok, **others)
    return Part(
        phase=phase,
        outcomes=outcomes,
        reasons=make_reasons(outcomes, "ValueError"),
        times={Time.LATENCY: build_histogram([1000] * count_answered(outcomes))},
        per_second={second: outcomes} if sum(outcomes) else {},
    )


def build_inner(name: str, latencies_us: Sequence[int] = (), second: int = 3, **changes: Any) -> Part:
    """What came of inner requests that were all ok, without a status if they took an even time."""
    outcomes = make_counts(len(latencies_us))
    odd = sum(latency_us % 2 for latency_us in latencies_us)
    part = Part(
        name=name,
        outcomes=outcomes,
        statuses={"200": odd} if odd else {},
        bytes_received=10 * len(latencies_us),
        times={Time.LATENCY: build_histogram(latencies_us)},
        per_second={second: outcomes} if latencies_us else {},
    )
    return msgspec.structs.replace(part, **changes)


def build_failed_inner(name: str, timeouts: int, reason: str = "no answer within 1s") -> Part:
    """What came of inner requests that were not answered, in the iteration at the first position."""
    outcomes = make_counts(timeout=timeouts)
    return build_inner(
        name, outcomes=outcomes, reasons=make_reasons(outcomes, reason), per_second={3: outcomes}
    )
