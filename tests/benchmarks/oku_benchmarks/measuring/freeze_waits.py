"""How long a client that always asks at the planned times would wait: the truth about a freeze."""

from oku_benchmarks.plan import Freeze


def expect_waits_ms(freeze: Freeze, delay_ms: float) -> list[float]:
    """For each request of the plan, from when it is due to when it is answered, the shortest first."""
    return sorted(
        _expect_wait_ms(freeze, (index + 0.5) / freeze.rate, delay_ms)
        for index in range(freeze.rate * freeze.run_s)
    )


def _expect_wait_ms(freeze: Freeze, due_s: float, delay_ms: float) -> float:
    answer_s = due_s + delay_ms / 1e3
    ends_s = freeze.at_s + freeze.for_s
    if freeze.at_s <= answer_s < ends_s:
        answer_s = ends_s
    return (answer_s - due_s) * 1e3
