import pytest

from oku_benchmarks.measuring.freeze_waits import expect_waits_ms
from oku_benchmarks.plan import Freeze


def test_a_target_that_never_freezes_is_waited_for_as_long_as_it_takes() -> None:
    """Each request for the same time."""
    waits = expect_waits_ms(Freeze(rate=10, run_s=2, at_s=5, for_s=1), 10)

    assert waits == pytest.approx([10] * 20)


def test_what_is_due_in_a_freeze_waits_for_its_end() -> None:
    """The first for all of it, the last for the least; what comes after it is answered as ever."""
    waits = expect_waits_ms(Freeze(rate=10, run_s=4, at_s=1, for_s=2), 0)

    assert waits == pytest.approx([0] * 20 + [50 + 100 * i for i in range(20)])


def test_what_is_due_just_before_a_freeze_waits_for_its_end_too() -> None:
    """Its answer would have come within the freeze."""
    waits = expect_waits_ms(Freeze(rate=10, run_s=4, at_s=1, for_s=2), 60)

    assert max(waits) == pytest.approx(2050)
