import pytest

from oku_cli.comparison.spec_differences import SpecDifference, describe_value, list_differences
from oku_cli.report.masking import mask_spec


def test_differences_are_listed_key_by_key() -> None:
    """A key that a spec does not have is None."""
    first, second = (
        {"method": "GET", "requests": 5, "timeout": 1.0},
        {"method": "GET", "requests": 6, "rate": "5/s"},
    )
    assert list_differences(first, second, dict) == [
        SpecDifference(key="requests", a=5, b=6),
        SpecDifference(key="timeout", a=1.0, b=None),
        SpecDifference(key="rate", a=None, b="5/s"),
    ]


def test_secrets_differ_without_being_shown() -> None:
    """Both are hidden alike."""
    (found,) = list_differences({"body": "secret-1"}, {"body": "secret-2"}, mask_spec)
    assert found == SpecDifference(key="body", a="***", b="***")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), ("a", "a"), (["a"], "a"), (["a", "b"], '["a", "b"]'), (True, "true"), (0.5, "0.5")],
)
def test_a_value_is_one_line(value: object, text: str) -> None:
    """A list of one is that one."""
    assert describe_value(value) == text
