import pytest
from yarl import URL

from oku_core.http_client.redirection import NOT_A_URL, RedirectError, join_location

HERE = URL("http://127.0.0.1:8080/a/b")


@pytest.mark.parametrize(
    ("location", "following"),
    [
        ("/c", "http://127.0.0.1:8080/c"),
        ("c", "http://127.0.0.1:8080/a/c"),
        ("//h/c", "http://h/c"),
        (f"https://{'a' * 60}.example/", f"https://{'a' * 60}.example/"),
        (f"/{'a' * 10_000}", f"http://127.0.0.1:8080/{'a' * 10_000}"),
        (f"http://h/{'a' * 10_000}", f"http://h/{'a' * 10_000}"),
        ("http://me:secret@h/", "http://h/"),
    ],
)
def test_a_redirection_leads_somewhere(location: str, following: str) -> None:
    """Its length does not matter, but for the name of a host."""
    assert str(join_location(HERE, location)) == following


@pytest.mark.parametrize("begin", ["http://", "//", " \x00HTTPS://", "h\tttp:/\t/", "http://me:secret@"])
@pytest.mark.parametrize("letter", ["a", "\u4e00", "a.", "a\t"])
def test_a_host_that_is_too_long_is_no_url(begin: str, letter: str) -> None:
    """It would take long to encode."""
    with pytest.raises(RedirectError, match=NOT_A_URL):
        join_location(HERE, begin + letter * 600 + "/")
