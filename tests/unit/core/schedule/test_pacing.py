from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import fractions

from oku_core.schedule.pacing import CATCH_UP_S, Pacer

NS = 10**9


def list_sent(pacer: Pacer, until_ns: int) -> list[int]:
    """When a worker sends that always could, and wakes on the nanosecond."""
    sent: list[int] = []
    while (now_ns := pacer.next_ns) < until_ns:
        allowed = pacer.count_allowed(now_ns)
        pacer.use(allowed)
        sent += [now_ns] * allowed
    return sent


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_all_workers_together_are_as_even_as_one(workers: int) -> None:
    """Their slots interleave, each at the middle of its share of the time."""
    sent = [at for rank in range(workers) for at in list_sent(Pacer(Fraction(50), rank, workers, 0), NS)]
    assert sorted(sent) == [10_000_000 + 20_000_000 * slot for slot in range(50)]


def test_a_loop_that_sleeps_a_moment_keeps_the_rate() -> None:
    """At 20,000 per second, a worker that wakes every 5 ms sends all, one that wakes every 20 ms half."""
    counts = []
    for wake_ms in (5, 20):
        pacer, sent = Pacer(Fraction(20_000), 0, 1, 0), 0
        for now_ms in range(wake_ms, 1001, wake_ms):
            allowed = pacer.count_allowed(now_ms * NS // 1000)
            pacer.use(allowed)
            sent += allowed
        counts.append(sent)
    assert counts == [20_000, 10_000]


@given(
    rate=fractions(Fraction(1, 10), 500),
    of=st.integers(1, 5),
    pauses_ns=st.lists(st.integers(0, NS // 3) | st.integers(0, 20_000_000), min_size=1, max_size=60),
    data=st.data(),
)
def test_no_worker_is_ever_too_fast(
    rate: Fraction, of: int, pauses_ns: list[int], data: st.DataObject
) -> None:
    """However it wakes: between any two moments it stays under its share and the little it may catch up."""
    begin_ns = data.draw(st.integers(0, 2 * 10**18))
    pacer = Pacer(rate, data.draw(st.integers(0, of - 1)), of, begin_ns)
    now_ns, wakes = begin_ns, []
    for pause_ns in pauses_ns:
        now_ns += pause_ns
        allowed = pacer.count_allowed(now_ns)
        pacer.use(allowed)
        wakes.append((now_ns, allowed))
        assert pacer.next_ns > now_ns
    for number, (first_ns, _) in enumerate(wakes):
        for last, (last_ns, _) in enumerate(wakes[number:], number):
            count = sum(allowed for _, allowed in wakes[number : last + 1])
            assert count <= rate / of * (Fraction(last_ns - first_ns, NS) + CATCH_UP_S) + 2


def test_who_idled_sends_no_burst() -> None:
    """After ten seconds without a request there is one slot to use, and the next comes in its time."""
    pacer = Pacer(Fraction(4), 0, 1, 0)
    assert pacer.count_allowed(10 * NS) == 1
    pacer.use(1)
    assert pacer.count_allowed(10 * NS) == 0
    assert pacer.next_ns == 10_125_000_000
    # Nothing is owed from before the begin.
    pacer = Pacer(Fraction(10), 1, 2, 5 * NS)
    assert pacer.count_allowed(5 * NS) == 0
    assert pacer.next_ns == 5_150_000_000
