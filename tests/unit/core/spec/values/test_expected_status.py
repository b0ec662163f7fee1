import pytest

from oku_core.spec.values.expected_status import ExpectedStatus, list_codes, parse_expect_status


def read_fault(value: object) -> str:
    """Return the error for a wrong value."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse_expect_status(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "statuses"),
    [
        ("200", ("200",)),
        (200, ("200",)),
        ("2xx", ("2xx",)),
        ("2XX", ("2xx",)),
        ("200, 404", ("200", "404")),
        (["200,404", 5, "5xx"], None),
        (["200,404", 503, "5xx"], ("200", "404", "503", "5xx")),
        ("100", ("100",)),
        ("599", ("599",)),
    ],
)
def test_statuses_come_in_lists_with_commas_or_as_classes(
    value: object, statuses: tuple[str, ...] | None
) -> None:
    """The command line and files accept all of these forms."""
    if statuses is None:
        assert read_fault(value) == "5 is not a status such as 200 or 2xx"
    else:
        assert parse_expect_status(value) == statuses


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("600", "600 is not a status such as 200 or 2xx"),
        ("6xx", "6xx is not a status such as 200 or 2xx"),
        ("0xx", "0xx is not a status such as 200 or 2xx"),
        ("20", "20 is not a status such as 200 or 2xx"),
        ("2000", "2000 is not a status such as 200 or 2xx"),
        ("20x", "20x is not a status such as 200 or 2xx"),
        ("2٣٣", "2٣٣ is not a status such as 200 or 2xx"),
        ("200,", "'' is not a status such as 200 or 2xx"),
        ("", "'' is not a status such as 200 or 2xx"),
        ("ok", "ok is not a status such as 200 or 2xx"),
        (200.0, "200.0 is not a status such as 200 or 2xx"),
        (-200, "-200 is not a status such as 200 or 2xx"),
        (True, "true is not text, put it in quotes"),
        (None, "null is not text"),
        ([], "no status is given"),
        ([[200]], "[200] is not text"),
        ({200: "ok"}, "{200: 'ok'} is not text"),
    ],
)
def test_an_invalid_status_is_named(value: object, fault: str) -> None:
    """A run that expects nothing, or something that no server can send, does not start."""
    assert read_fault(value) == fault


def test_a_status_knows_its_codes() -> None:
    """It has one code or a hundred, and several statuses form a set."""
    assert list(ExpectedStatus("404").codes) == [404]
    assert list_codes(parse_expect_status("2xx,404,204")) == {*range(200, 300), 404}
