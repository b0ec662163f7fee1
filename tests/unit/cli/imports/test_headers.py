import pytest

from oku_cli.imports.headers import SecretBox, choose_headers


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer abc", "Bearer {env:AUTHORIZATION}"),
        ("Authorization", "abc", "{env:AUTHORIZATION}"),
        ("Cookie", "a=1", "{env:COOKIE}"),
        ("X-Api-Key", "abc", "{env:IMPORTED_X_API_KEY}"),
        ("X-CSRF-Token", "abc", "{env:IMPORTED_X_CSRF_TOKEN}"),
        ("Authorization", "Bearer {env:T}", "Bearer {env:AUTHORIZATION}"),
        ("Accept", "text/html", "text/html"),
        ("Author", "me", "me"),
    ],
)
def test_secrets_of_headers_are_replaced(name: str, value: str, shown: str) -> None:
    """What only says how to talk stays."""
    assert SecretBox().hide_header(name, value) == shown
    assert SecretBox(keeps=True).hide_header(name, value) == value.replace("{env:", "{literal:env:")


def test_secrets_of_urls_are_replaced() -> None:
    """In the query, and user and password; one secret has one name, another one of the same header
    another.
    """
    box = SecretBox()
    url = box.hide_query("http://joe:pw@h/p?access_token=abc&x=1&flag&api_key=d")
    query = "access_token={env:IMPORTED_ACCESS_TOKEN}&x=1&flag&api_key={env:IMPORTED_API_KEY}"
    assert url == f"http://{{env:URL_USER}}:{{env:URL_PASSWORD}}@h/p?{query}"
    assert box.names == ["IMPORTED_ACCESS_TOKEN", "IMPORTED_API_KEY", "URL_USER", "URL_PASSWORD"]
    assert box.hide_query("http://token@h/") == "http://{env:URL_USER_2}@h/"
    box = SecretBox()
    values = [box.hide_header("Cookie", value) for value in ("a=1", "b=2", "a=1")]
    assert values == ["{env:COOKIE}", "{env:COOKIE_2}", "{env:COOKIE}"]


def test_headers_of_a_browser_are_left_out() -> None:
    """Those of an engine are left out in any case; a command may ask for another host than its URL."""
    headers = [
        ("Host", "h"),
        ("Content-Length", "0"),
        ("sec-fetch-mode", "x"),
        ("If-None-Match", "e"),
        (":path", "/"),
        ("Accept", "a"),
    ]
    assert choose_headers(headers, is_browser=True) == [("Accept", "a")]
    assert choose_headers(headers) == [headers[0], *headers[2:4], ("Accept", "a")]
