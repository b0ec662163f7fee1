from typing import Any

import pytest

from oku_cli.replay.request_text import show_request
from oku_cli.replay.run_request import RunRequest
from oku_core.data.data_format import DataFormat
from oku_core.errors import UserError
from oku_core.spec.data_file import DataFile
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

DATA = DataFile(
    name="t.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("sku",), index="1" * 64
)


def build(row: dict[str, str] | None = None, url: str = "http://h:81", **target: Any) -> RunRequest:
    """Request 7 of a run, of one target."""
    fields: dict[str, Any] = {"name": "buy", "url": "/{i}/{sku}", **target}
    spec = Spec(urls=(Url(url),), targets=(Target(**fields),), data=DATA if row else None)
    return RunRequest("r1", 7, spec, row)


def test_a_request_is_shown_as_it_is_sent() -> None:
    """With the values of its row, each written as its place demands."""
    shown = show_request(
        build(
            {"sku": 'a "b"'}, method="POST", body='{"sku":"{sku}"}', is_json=True, headers=(Header("X: {i}"),)
        )
    )
    assert (shown.target, shown.url) == ("buy", "http://h:81/7/a%20%22b%22")
    assert shown.line == "POST /7/a%20%22b%22 HTTP/1.1"
    assert ("Host", "h:81") in shown.headers
    assert ("X", "7") in shown.headers
    assert shown.body == r'{"sku":"a \"b\""}'
    assert ("Content-Length", str(len(shown.body))) in shown.headers
    assert shown.row == {"sku": 'a "b"'}


def test_secrets_are_masked() -> None:
    """User and password, values of headers that may be secret; what placeholders stand for is not."""
    headers = (Header("X-Key: abc-{sku}"), Header("Cookie: {env:C}"), Header("Accept: a/b"))
    shown = show_request(build({"sku": "1"}, url="http://me:pw@h", headers=headers))
    found = dict(shown.headers)
    assert found["Authorization"] == "Basic ***"
    assert (found["X-Key"], found["Cookie"], found["Accept"]) == ("***1", "{env:C}", "a/b")
    assert shown.url == "http://***@h/7/1"
    assert "pw" not in str(shown)


def test_the_length_of_a_body_with_a_secret_is_not_told() -> None:
    """It is not known here, and says something of the secret."""
    shown = show_request(build(url="http://h", body="a={env:A}", method="POST"))
    assert dict(shown.headers)["Content-Length"] == "***"
    assert shown.body == "a={env:A}"


def test_what_cannot_be_sent_cannot_be_shown() -> None:
    """The error names the request."""
    with pytest.raises(UserError, match="request 7 of run r1 cannot be sent: "):
        show_request(build(url="ftp://h"))
