import pytest

from oku_core.spec.values.delay import parse_delay
from oku_server.behaviour.overrides import (
    MAX_SEED,
    MOST_OVERRIDES,
    NO_OVERRIDES,
    Overrides,
    OverridesError,
    parse_overrides,
)


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
