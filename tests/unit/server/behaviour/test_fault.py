import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.uniform import uniform
from oku_server.behaviour.fault import Fault, FaultRates, parse_fraction


def test_a_rate_is_a_fraction_between_0_and_1() -> None:
    """Both ends of the range are allowed."""
    for text, rate in [("0", 0.0), ("1", 1.0), ("0.01", 0.01), ("1e-3", 0.001)]:
        assert parse_fraction(text) == rate
    for text in ["1.5", "-0.1", "nan", "inf"]:
        # A rate outside of 0 to 1 is refused. The message names the value and what is allowed.
        with pytest.raises(ValueError, match=rf"^{text} is not between 0 and 1$"):
            parse_fraction(text)
    for text in ["", "often", "1%"]:
        # A rate that is not a number is refused. The message shows the form of a rate.
        with pytest.raises(ValueError, match=rf"^{text} is not a fraction between 0 and 1, such as 0.01$"):
            parse_fraction(text)


def test_rates_sum_to_1_at_most() -> None:
    """A request has at most one fault, so all rates together cannot exceed 1."""
    with pytest.raises(ValueError, match=r"^the rates of all faults sum to 1\.1, which is not at most 1$"):
        FaultRates(error=0.6, stall=0.5)
    # Rates that sum to 1 but for rounding are allowed.
    assert FaultRates(error=0.7, reset=0.1, stall=0.1, truncate=0.1 + 2**-50)
    # A rate outside of 0 to 1 makes no rates. The type enforces the rule for callers that parse nothing.
    with pytest.raises(ValueError, match="the reset rate -1 is not between 0 and 1"):
        FaultRates(reset=-1)
    # No rates are false. Rates that cannot cause a fault are false, so that nothing is drawn.
    assert not FaultRates()
    assert FaultRates(truncate=0.001)


@given(st.floats(0, 1, exclude_max=True))
def test_without_rates_there_is_no_fault(number: float) -> None:
    """A server that was not asked for faults causes none."""
    assert FaultRates().choose(number) is None


@pytest.mark.parametrize("fault", list(Fault))
def test_a_rate_of_1_is_always_that_fault(fault: Fault) -> None:
    """Every request gets the fault, even with the largest number that can be drawn."""
    rates = FaultRates(**{fault.value: 1.0})
    assert {rates.choose(number) for number in (0.0, 0.5, 1 - 2.0**-53)} == {fault}


def test_each_fault_has_a_share_of_its_rate() -> None:
    """Over many indices, each fault is about as frequent as its rate says."""
    rates = FaultRates(error=0.1, reset=0.2, stall=0.3, truncate=0.05)
    drawn = Counter(rates.draw(7, index) for index in range(10_000))
    for fault, rate in [*rates.by_fault.items(), (None, 0.35)]:
        deviation = math.sqrt(10_000 * rate * (1 - rate))
        assert abs(drawn[fault] - 10_000 * rate) < 5 * deviation


def test_a_fault_is_a_pure_function_of_seed_and_index() -> None:
    """The same seed gives the same faults; another seed gives others."""
    rates = FaultRates(error=0.5)
    first, again, other = ([rates.draw(seed, index) for index in range(100)] for seed in (1, 1, 2))
    assert first == again
    assert first != other
    # Faults do not follow delays.
    short = [index for index in range(10_000) if uniform(0, index) < 0.5]
    faults = sum(rates.draw(0, index) is not None for index in short)
    assert abs(faults - len(short) / 2) < 5 * math.sqrt(len(short) / 4)
