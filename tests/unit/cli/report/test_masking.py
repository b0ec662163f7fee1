import pytest

from oku_cli.report.masking import has_mask, mask_header, mask_spec


@pytest.mark.parametrize(
    ("header", "masked"),
    [
        ("Authorization: Bearer abc", "Authorization: ***"),
        ("proxy-authorization: Basic eDp5", "proxy-authorization: ***"),
        ("Cookie: a=b", "Cookie: ***"),
        ("X-Tenant: 1", "X-Tenant: ***"),
        ("X-Whatever: tok_123", "X-Whatever: ***"),
        ("Referer: https://h/?session=1", "Referer: ***"),
        ("X-Request-Id: oku-{i}", "X-Request-Id: ***{i}"),
        ('X-Claims: {"user": "me"}', "X-Claims: ***"),
    ],
)
def test_the_value_of_a_header_is_hidden(header: str, masked: str) -> None:
    """Only its author knows whether it is a secret; the index of a request is not one."""
    assert mask_spec({"header": [header]}) == {"header": [masked]}


@pytest.mark.parametrize(
    "header",
    [
        "Accept: application/json", "content-type: text/plain; charset=utf-8", "User-Agent: mine/1.0",
        "Empty:", "Oku-Delay: 20ms", "X-Id: {i}", "Authorization: Bearer {env:TOKEN}",
        "Cookie: {file:cookie.txt}",
    ],
)  # fmt: skip
def test_what_cannot_be_a_secret_is_shown(header: str) -> None:
    """Headers that only control the exchange are shown, and so are placeholders."""
    masked = mask_spec({"header": [header]})["header"][0]
    assert masked.replace(" ", "") == header.replace(" ", "")


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://user:pw@h/x", "https://***:***@h/x"),
        ("https://token@h/x", "https://***@h/x"),
        ("https://me:{env:PASSWORD}@h/x", "https://***:{env:PASSWORD}@h/x"),
        ("https://h/x?a=1&api_key=s&flag", "https://h/x?a=***&api_key=***&***"),
        ("https://h/x?key={i}&t={file:t}&u=a{i}", "https://h/x?key={i}&t={file:t}&u=***{i}"),
        ("http://h:8080/items/{i}", "http://h:8080/items/{i}"),
        ("http://h/a:b@c", "http://h/a:b@c"),
        ("http://h?a=//b@c", "http://h?a=***"),
    ],
)
def test_users_and_queries_of_urls_are_hidden(url: str, masked: str) -> None:
    """This holds for targets and for proxies."""
    assert mask_spec({"url": [url], "proxy": url}) == {"url": [masked], "proxy": masked}


@pytest.mark.parametrize("body", ['{"password": "x"}', "user=x&password=y", "just text", "{p}"])
def test_a_body_is_hidden(body: str) -> None:
    """All of it but its placeholders is hidden, whatever its format."""
    assert mask_spec({"body": body}) == {"body": "***"}
    assert mask_spec({"body": "{file:body.json}"}) == {"body": "{file:body.json}"}


def test_targets_are_masked_and_a_masked_spec_is_recognised() -> None:
    """URL, headers and body of a target are masked as those of a spec with one target, and so is the base."""
    target = {"name": "buy", "url": "/buy?key=s", "header": ["X-Key: s"], "body": "s"}
    assert mask_spec({"base-url": "https://me:s@h", "targets": [target]}) == {
        "base-url": "https://***:***@h",
        "targets": [{"name": "buy", "url": "/buy?key=***", "header": ["X-Key: ***"], "body": "***"}],
    }
    # A masked spec is recognised. The page can say that something was hidden.
    open_spec, secret = {"requests": 1, "header": ["Accept: b"]}, {"header": ["Cookie: b"]}
    assert not has_mask(open_spec, mask_spec(open_spec))
    assert has_mask(secret, mask_spec(secret))
    assert secret == {"header": ["Cookie: b"]}


def test_columns_of_data_are_shown() -> None:
    """They are no secrets of the spec; what stands around them may be one."""
    assert mask_header("X-Key: abc{sku}-{i}{other}", ["sku", "a"]) == "X-Key: ***{sku}***{i}***"
    assert mask_header("X-Key: {sku}") == "X-Key: ***"
    # Columns of the data are shown. They are placeholders; other names in braces are text.
    spec = {"url": ["http://h/?a={sku}&b={other}"], "header": ["X-A: {sku}"], "body": "{sku}"}
    assert mask_spec({**spec, "data": {"columns": ["sku"]}}) == {
        "url": ["http://h/?a={sku}&b=***"],
        "header": ["X-A: {sku}"],
        "body": "{sku}",
        "data": {"columns": ["sku"]},
    }
