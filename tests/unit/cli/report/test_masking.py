import pytest

from oku_cli.report.masking import MASK, has_mask, mask_spec


@pytest.mark.parametrize(
    ("header", "masked"),
    [
        ("Authorization: Bearer abc", f"Authorization: {MASK}"),
        ("proxy-authorization: Basic eDp5", f"proxy-authorization: {MASK}"),
        ("Cookie: a=b", f"Cookie: {MASK}"),
        ("X-Api-Key: 1", f"X-Api-Key: {MASK}"),
        ("X-Auth-Token: 1:2", f"X-Auth-Token: {MASK}"),
        ("Accept: application/json", "Accept: application/json"),
        ("X-Request-Id: oku-{i}", "X-Request-Id: oku-{i}"),
    ],
)
def test_headers_that_may_be_secrets_have_no_value(header: str, masked: str) -> None:
    """Their names say so; the others stay."""
    assert mask_spec({"header": [header]}) == {"header": [masked]}


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://user:pw@h/x", f"https://user:{MASK}@h/x"),
        ("https://h/x?a=1&api_key=s&token=t", f"https://h/x?a=1&api_key={MASK}&token={MASK}"),
        ("https://h/x?key={i}", "https://h/x?key={i}"),
        ("http://h:8080/items/{i}?page=2", "http://h:8080/items/{i}?page=2"),
        ("http://h/a:b@c", "http://h/a:b@c"),
    ],
)
def test_passwords_and_secret_parameters_of_urls_are_hidden(url: str, masked: str) -> None:
    """Of targets and proxies; the index is no secret."""
    assert mask_spec({"url": [url], "proxy": url}) == {"url": [masked], "proxy": masked}


def test_secret_fields_of_bodies_are_hidden() -> None:
    """In JSON and in forms."""
    assert mask_spec({"body": '{"user": "x", "password": "a\\"b", "n": 1}'})["body"] == (
        f'{{"user": "x", "password": "{MASK}", "n": 1}}'
    )
    assert mask_spec({"body": "user=x&password=y"})["body"] == f"user=x&password={MASK}"


def test_what_was_hidden_is_known() -> None:
    """So that it can be said."""
    open_spec, secret = {"requests": 1, "header": ["A: b"]}, {"header": ["Cookie: b"]}
    assert not has_mask(open_spec, mask_spec(open_spec))
    assert has_mask(secret, mask_spec(secret))
    assert secret == {"header": ["Cookie: b"]}
