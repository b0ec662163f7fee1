import pytest
from tests.unit.server.client import Chance

from oku_core.spec.values.delay import parse_delay
from oku_server.behaviour.fault import Fault, FaultRates
from oku_server.behaviour.planner import (
    MAX_SEED,
    MOST_OVERRIDES,
    NO_OVERRIDES,
    DelayPlan,
    Overrides,
    OverridesError,
    Planner,
    find_name,
    parse_index,
    parse_overrides,
)


def test_the_name_is_the_path_without_its_slash() -> None:
    """The query, the scheme and the host of a target do not matter."""
    for target, name in [
        ("/12", "12"),
        ("/", ""),
        ("/a/b", "a/b"),
        ("/12?x=/1?", "12"),
        ("http://host:1/12?x=1", "12"),
        ("http://host", ""),
        ("*", "*"),
        ("/-/healthz", "-/healthz"),
    ]:
        assert find_name(target.encode()) == name.encode()
    # A target that is not a url has no name. The caller decides what becomes of the request.
    with pytest.raises(ValueError, match="Invalid IPv6 URL"):
        find_name(b"http://[/1")


def test_a_numeric_name_alone_is_an_index() -> None:
    """A name of decimal digits is an index."""
    for name, index in [("0", 0), ("12", 12), ("007", 7), ("9" * 18, 10**18 - 1)]:
        assert parse_index(name.encode()) == index
    for name in ["", "a", "1a", "-1", "1.0", "1/2", "²", "\u0661", "1" * 19, "1" * 8000]:
        # Any other name is not an index.
        assert parse_index(name.encode()) is None


def test_the_plan_of_an_index_is_a_pure_function_of_seed_and_index() -> None:
    """The delay and the fault of a numeric name are those of `Delay` and `FaultRates`."""
    for text in ["0..3s", "5ms..80ms", "exp:50ms", "lognormal:40ms,0.5", "20ms"]:
        delay, faults = parse_delay(text), FaultRates(error=0.3)
        planner = Planner(delay, faults, 5, Chance())
        for index in range(50):
            assert planner.plan(b"%d" % index) == DelayPlan(delay.draw_s(5, index), faults.draw(5, index))
    # Another seed gives another plan. Servers with different seeds behave differently.
    plans = [Planner(parse_delay("0..3s"), FaultRates(), seed, Chance()) for seed in (1, 2)]
    first, second = ([plan.plan(b"%d" % index) for index in range(50)] for plan in plans)
    assert first != second


def test_a_wish_takes_the_place_of_delay_and_seed() -> None:
    """An override replaces only what it names; the fault rates stay, and the seed decides whom faults hit."""
    own, faults = parse_delay("0..3s"), FaultRates(error=0.3)
    planner = Planner(own, faults, 5, Chance())
    for overrides, delay, seed in [
        (NO_OVERRIDES, own, 5),
        (Overrides(seed=6), own, 6),
        (Overrides(parse_delay("5ms..80ms")), parse_delay("5ms..80ms"), 5),
        (Overrides(parse_delay("5ms..80ms"), 0), parse_delay("5ms..80ms"), 0),
    ]:
        other = planner.override(overrides)
        for index in range(50):
            assert other.plan(b"%d" % index) == DelayPlan(delay.draw_s(seed, index), faults.draw(seed, index))


def test_any_other_name_is_planned_by_chance() -> None:
    """The first number decides on the delay, the second on the fault."""
    planner = Planner(parse_delay("0ms..80ms"), FaultRates(error=0.5), 0, Chance([0.75, 0.1, 0.25, 0.6]))
    first, second = planner.plan(b"a"), planner.plan(b"a")
    assert (first.fault, second.fault) == (Fault.ERROR, None)
    assert (first.delay_s, second.delay_s) == pytest.approx((0.06, 0.02))


@pytest.mark.parametrize(("text", "delay_s"), [("20ms", 0.02), ("2..2s", 2.0), ("exp:0s", 0.0)])
def test_a_delay_that_never_changes_is_not_drawn(text: str, delay_s: float) -> None:
    """Nothing is left to chance for any name when there is one delay and no fault."""
    planner = Planner(parse_delay(text), FaultRates(), 0, Chance())
    assert planner.plan(b"a") == planner.plan(b"1") == planner.always == DelayPlan(delay_s, None)


@pytest.mark.parametrize(
    ("delay", "seed", "overrides"),
    [
        (None, None, NO_OVERRIDES),
        (b"0..3s", None, Overrides(parse_delay("0..3s"), None)),
        (None, b"7", Overrides(None, 7)),
        (b"lognormal:40ms,0.5", b"0", Overrides(parse_delay("lognormal:40ms,0.5"), 0)),
        ("20µs".encode(), str(MAX_SEED).encode(), Overrides(parse_delay("20µs"), MAX_SEED)),
    ],
)
def test_overrides_are_what_the_headers_say(
    delay: bytes | None, seed: bytes | None, overrides: Overrides
) -> None:
    """Delays are written as for the flag and seeds in digits; the server's values replace missing ones."""
    assert parse_overrides(delay, seed) == overrides


@pytest.mark.parametrize(
    ("delay", "seed", "message"),
    [
        (
            b"soon",
            None,
            "Oku-Delay: soon is not a delay such as 20ms, 0..3s, 5ms..80ms, exp:50ms or lognormal:40ms,0.5",
        ),
        (b"0..3s; seed=7", None, "Oku-Delay: 0..3s; seed=7 is not a delay such as "),
        (b"2h", b"7", "Oku-Delay: 2h is not between 0s and 1h"),
        (b"", None, "Oku-Delay: '' is not a delay such as "),
        (b"\xff", None, r"Oku-Delay: b'\xff' is not UTF-8"),
        (b"1s", b"", "Oku-Seed: '' is not a whole number between 0 and 9223372036854775807"),
        (None, b"-1", "Oku-Seed: -1 is not a whole number"),
        (None, b"1k", "Oku-Seed: 1k is not"),
        (None, b"1.0", "Oku-Seed: 1.0 is not"),
        (None, b"7, 8", "Oku-Seed: 7, 8 is not"),
        (None, str(MAX_SEED + 1).encode(), "Oku-Seed: 9223372036854775808 is not"),
        (None, b"0" * 60_000, "Oku-Seed: '000"),
        (None, b"\xb2", "Oku-Seed: ² is not"),
    ],
)
def test_a_wish_that_cannot_be_read_is_named_in_one_line(
    delay: bytes | None, seed: bytes | None, message: str
) -> None:
    """The line names the header, its value and what is allowed; a long value is cut."""
    with pytest.raises(OverridesError) as caught:
        parse_overrides(delay, seed)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_no_more_than_so_many_wishes_are_remembered() -> None:
    """A client that asks for something new each time does not fill the memory."""
    for seed in range(2 * MOST_OVERRIDES):
        assert parse_overrides(None, b"%d" % seed) == Overrides(None, seed)
    assert parse_overrides.cache_info().currsize == MOST_OVERRIDES
