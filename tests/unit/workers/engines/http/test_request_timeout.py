"""Which answers come too late, and how often it is looked."""

import asyncio

import pytest

from oku_core.accounting.outcome import FAILED_CHECK, OK, TIMEOUT, UNEXPECTED_STATUS
from oku_core.process.supervision import Health
from oku_workers.engines.http.answer_checks import CHECK_WITHIN
from oku_workers.engines.http.request_timeout import RequestTimeout, keep_sweeping
from oku_workers.engines.http.response_counting import Parsed

FINE: Parsed = (OK, 200, 5, "")
UNEXPECTED: Parsed = (UNEXPECTED_STATUS, 503, 5, "status 503")
SECOND_NS = 10**9


def test_an_answer_that_is_too_late_to_be_ok_is_no_answer_after_the_limit() -> None:
    """Before that it has failed its check, unless it has failed anyway."""
    cases: list[tuple[Parsed, int, Parsed]] = [
        (FINE, 2 * SECOND_NS, (FAILED_CHECK, 200, 5, CHECK_WITHIN)),
        (UNEXPECTED, 2 * SECOND_NS, UNEXPECTED),
        (FINE, 2 * SECOND_NS + 1, (TIMEOUT, 200, 5, "no answer within 2s")),
        (UNEXPECTED, 2 * SECOND_NS + 1, (TIMEOUT, 503, 5, "no answer within 2s")),
    ]
    for parsed, latency_ns, judged in cases:
        limit = RequestTimeout(2)
        assert (limit.ns, limit.reason) == (2 * SECOND_NS, "no answer within 2s")
        assert limit.judge(parsed, latency_ns) == judged
    # A limit may be a part of a second. It is told as one would write it.
    limit = RequestTimeout(0.0015)
    assert (limit.ns, limit.reason) == (1_500_000, "no answer within 0.0015s")


@pytest.mark.parametrize(
    ("limit_s", "pause_s"), [(3600.0, 0.25), (12.5, 0.25), (1.0, 0.02), (0.25, 0.005), (0.001, 0.005)]
)
async def test_short_limits_are_looked_after_often(
    monkeypatch: pytest.MonkeyPatch, limit_s: float, pause_s: float
) -> None:
    """50 times within the limit, but at least four times a second and at most 200 times."""
    seen: list[float | str] = []

    async def sleep(seconds: float) -> None:
        if len(seen) == 4:
            raise asyncio.CancelledError
        seen.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    health = Health("timeouts")
    health.trouble = "it has failed once"
    with pytest.raises(asyncio.CancelledError):
        await keep_sweeping(lambda: seen.append("look"), int(limit_s * 1e9), health)
    assert seen == [pause_s, "look", pause_s, "look"]
    assert not health.trouble
