import pytest

from oku_core.spec.values.stop_when_down import parse_stop_when_down


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30s", 30.0),
        ("1s", 1.0),
        (90, 90.0),
        ("1h", 3600.0),
        ("never", 0.0),
        ("Never", 0.0),
        (0, 0.0),
        (0.0, 0.0),
        ("0s", 0.0),
    ],
)
def test_a_duration_or_never_is_read(value: object, seconds: float) -> None:
    """Never is 0, and so is 0."""
    assert parse_stop_when_down(value) == seconds


@pytest.mark.parametrize("value", ["500ms", "2h", "-1s", "soon", ""])
def test_anything_else_is_refused(value: str) -> None:
    """The line says what is allowed."""
    with pytest.raises(ValueError, match="is neither a duration between 1s and 1h nor never"):
        parse_stop_when_down(value)
