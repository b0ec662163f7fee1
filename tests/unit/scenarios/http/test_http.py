import pytest

from oku.http.http import parse_think_time


@pytest.mark.parametrize(
    ("text", "least", "middle", "most"),
    [
        (2, 2.0, 2.0, 2.0), (0.25, 0.25, 0.25, 0.25), ("500ms", 0.5, 0.5, 0.5),
        ("1s..3s", 1.0, 2.0, 3.0), ("1..3s", 1.0, 2.0, 3.0), ("500ms..1s", 0.5, 0.75, 1.0),
        ("10..30ms", 0.01, 0.02, 0.03), ("0..0", 0.0, 0.0, 0.0),
    ],
)  # fmt: skip
def test_think_times(text: str | float, least: float, middle: float, most: float) -> None:
    """Any time between two is as likely, whole seconds or not."""
    quantile_s = parse_think_time(text)
    assert [quantile_s(p) for p in (0.0, 0.5, 1.0)] == pytest.approx([least, middle, most])


def test_other_forms_of_delays() -> None:
    """They are those of Oku's delay servers."""
    assert parse_think_time("exp:2s")(0.5) == pytest.approx(1.386, abs=0.001)


@pytest.mark.parametrize("text", ["", "soon", "3s..1s", "-1s", "..", "1s..", -1, "a..b"])
def test_what_is_none(text: str | float) -> None:
    """It is refused with its value."""
    with pytest.raises(ValueError, match="is not "):
        parse_think_time(text)
