import math
import re
from collections import Counter
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.delay import MAX_DELAY_S, parse_delay

SEEDS = st.integers(min_value=0, max_value=2**63 - 1)
PROBABILITIES = st.integers(0, 2**53 - 1).map(lambda part: part * 2.0**-53)
INDICES = st.integers(min_value=0, max_value=10**15 - 1)
FORMS = ["20ms", "0..3s", "5ms..80ms", "exp:50ms", "lognormal:40ms,0.5", "0..0s", "exp:0s", "lognormal:0s,5"]
P_LAST = 1 - 2.0**-53


def draw_many(text: str, count: int = 20_000) -> list[float]:
    """Draw the delays of the first requests with a fixed seed."""
    delay = parse_delay(text)
    return [delay.draw_s(7, index) for index in range(count)]


@given(text=st.sampled_from(FORMS), seed=SEEDS, index=INDICES)
def test_the_same_seed_and_index_give_the_same_delay(text: str, seed: int, index: int) -> None:
    """A delay depends neither on who parsed the form nor on earlier draws."""
    delay = parse_delay(text)
    delay.draw_s(seed, index + 1)
    assert delay.draw_s(seed, index) == parse_delay(text).draw_s(seed, index)


@pytest.mark.parametrize("text", ["0..3s", "5ms..80ms", "exp:50ms", "lognormal:40ms,0.5"])
def test_another_seed_gives_other_delays(text: str) -> None:
    """The seed determines the delays."""
    delay = parse_delay(text)
    assert [delay.draw_s(1, i) for i in range(50)] != [delay.draw_s(2, i) for i in range(50)]


@pytest.mark.parametrize(
    ("text", "seconds"), [("20ms", 0.02), ("0s", 0.0), ("5", 5.0), (" 1h ", 3600.0), (0.25, 0.25), (2, 2.0)]
)
def test_a_fixed_delay_never_changes(text: object, seconds: float) -> None:
    """A plain duration is the delay of every request."""
    delay = parse_delay(text)
    assert {delay.draw_s(0, index) for index in range(100)} == {seconds}
    assert delay.mean_s == seconds
    assert delay == str(text).strip()


@pytest.mark.parametrize("text", ["0..3s", "0s..3s", "0..3", "0S..3S", "0 .. 3 s", "00..0_3s"])
def test_whole_seconds_draw_whole_seconds(text: str) -> None:
    """If both limits are whole seconds, all whole seconds between them are drawn equally often."""
    delays = Counter(draw_many(text))
    assert set(delays) == {0.0, 1.0, 2.0, 3.0}
    assert all(abs(count - 5000) < 300 for count in delays.values())
    assert parse_delay(text).mean_s == 1.5


@pytest.mark.parametrize(
    ("text", "low_s", "high_s"),
    [
        ("5ms..80ms", 0.005, 0.08),
        ("5..80ms", 0.005, 0.08),
        ("0.5..3s", 0.5, 3.0),
        ("0..3000ms", 0.0, 3.0),
        ("0s..3000ms", 0.0, 3.0),
        ("0..2.5s", 0.0, 2.5),
        ("0..1h", 0.0, 3600.0),
    ],
)
def test_other_limits_draw_evenly_between_them(text: str, low_s: float, high_s: float) -> None:
    """Each tenth of the range is drawn equally often, and a missing unit is taken from the other limit."""
    delays = draw_many(text)
    assert low_s <= min(delays) < max(delays) < high_s
    tenths = Counter(int((delay - low_s) / (high_s - low_s) * 10) for delay in delays)
    assert all(abs(tenths[number] - 2000) < 200 for number in range(10))


@pytest.mark.parametrize(
    "text", ["7s", "0..3s", "2..10s", "5ms..80ms", "exp:50ms", "lognormal:40ms,0.5", "lognormal:2s,0"]
)
def test_the_mean_is_that_of_many_draws(text: str) -> None:
    """By the law of large numbers, the mean of many draws approaches the mean of the form."""
    assert fmean(draw_many(text)) == pytest.approx(parse_delay(text).mean_s, rel=0.03)


def test_random_delays_have_their_distribution() -> None:
    """The share of delays above twice the mean among those above the mean equals the share above the mean."""
    delays = draw_many("exp:50ms")
    longer = sum(delay > 0.05 for delay in delays)
    assert longer / len(delays) == pytest.approx(math.exp(-1), rel=0.03)
    assert sum(delay > 0.1 for delay in delays) / longer == pytest.approx(math.exp(-1), rel=0.05)
    # A lognormal delay has its median and sigma.
    delays = draw_many("lognormal:40ms,0.5")
    assert median(delays) == pytest.approx(0.04, rel=0.02)
    assert fmean(math.log(delay / 0.04) ** 2 for delay in delays) == pytest.approx(0.25, rel=0.03)


@pytest.mark.parametrize("text", [*FORMS, "exp:1h", "lognormal:1s,4", "0..3600s", "0..1h"])
@pytest.mark.parametrize("probability", [0.0, 2.0**-53, 0.5, P_LAST])
def test_no_delay_is_negative_or_longer_than_an_hour(text: str, probability: float) -> None:
    """A server can wait for the delays at both ends of every distribution."""
    assert 0 <= parse_delay(text).quantile_s(probability) <= MAX_DELAY_S


@given(text=st.sampled_from(FORMS), first=PROBABILITIES, second=PROBABILITIES)
def test_a_higher_probability_never_gives_a_shorter_delay(text: str, first: float, second: float) -> None:
    """The quantile function of a distribution never falls."""
    delay = parse_delay(text)
    low, high = sorted((first, second))
    assert delay.quantile_s(low) <= delay.quantile_s(high)


def test_an_invalid_delay_is_named() -> None:
    """The error shows the value and an example of each form."""
    cases: list[object] = [
        "", "fast", "..", "0..", "..3s", "3..0s", "80ms..5ms", "-1..3s", "0..1..2s", "5 parsecs", "٣..٣s",
        "exp", "exp:", "exp:fast", "exp:50ms,1", "EXP:50ms", "lognormal:", "lognormal:40ms",
        "lognormal:40ms,", "lognormal:40ms,wide", "lognormal:40ms,-1", "lognormal:40ms,5.1",
        "lognormal:40ms,nan", "lognormal:40ms,٣", "lognormal:-40ms,0.5", "exp:\n50ms", "1e400", True, None,
        [1],
        {"exp": "50ms"},
    ]  # fmt: skip
    for text in cases:
        with pytest.raises(
            ValueError, match=r"^[^\n]* is not a delay such as 20ms, 0\.\.3s, 5ms\.\.80ms, exp:50ms or "
        ):
            parse_delay(text)
    for text in [
        "-5ms",
        "3601s",
        "2h",
        "0..7200s",
        "0..2h",
        "exp:2h",
        "exp:-1s",
        "lognormal:1h,5",
        "0..99999999999999999999s",
    ]:
        # A delay is between nothing and an hour.
        with pytest.raises(ValueError, match=f"^{re.escape(text)} is not between 0s and 1h$"):
            parse_delay(text)


@given(st.text(alphabet="0123456789.sm,:-e \n") | st.text() | st.floats() | st.integers())
def test_whatever_is_written_gives_a_delay_or_one_line(text: object) -> None:
    """The parser raises only `ValueError`, and a delay that it accepts is read back as the same delay."""
    message = "no error"
    try:
        delay = parse_delay(text)
    except ValueError as error:
        message = str(error)
    else:
        assert parse_delay(delay).mean_s == delay.mean_s
    assert message.isprintable()


@given(st.sampled_from(["exp:", "lognormal:", ""]), st.text(alphabet="0123.sm,"))
def test_a_form_with_any_arguments_gives_a_delay_or_one_line(kind: str, arguments: str) -> None:
    """The arguments of a form are checked as strictly as the form itself."""
    message = "no error"
    try:
        assert 0 <= parse_delay(kind + arguments).quantile_s(0.5) <= MAX_DELAY_S
    except ValueError as error:
        message = str(error)
    assert message.isprintable()
