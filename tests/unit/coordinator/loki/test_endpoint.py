import ssl
from pathlib import Path

import pytest
from tests.kit.servers.certificates import Certificates

from oku_coordinator.loki.endpoint import LokiTarget


@pytest.mark.parametrize(
    ("url", "push", "query"),
    [
        ("http://loki:3100", "http://loki:3100/loki/api/v1/push", "http://loki:3100/loki/api/v1/query_range"),
        ("https://h/a/", "https://h/a/loki/api/v1/push", "https://h/a/loki/api/v1/query_range"),
        (
            "http://[::1]:3100/",
            "http://[::1]:3100/loki/api/v1/push",
            "http://[::1]:3100/loki/api/v1/query_range",
        ),
        ("http://h/loki/api/v1/push", "http://h/loki/api/v1/push", "http://h/loki/api/v1/query_range"),
        ("http://h/logs/push/", "http://h/logs/push", "http://h/logs/query_range"),
    ],
)
def test_the_path_of_the_api_is_added_unless_it_is_there(url: str, push: str, query: str) -> None:
    """A prefix is kept."""
    target = LokiTarget(url=url)
    assert (target.push_url, target.query_url) == (push, query)


@pytest.mark.parametrize(
    "url",
    ["", "loki:3100", "ftp://loki", "http://", "http://h:port", "http://h:0", "http://h:70000", "http://h?a=b",
     "http://h/#x", "http://h /", "http://[::1", "http://h\n"],
)  # fmt: skip
def test_what_is_not_a_url_of_loki_is_named(url: str) -> None:
    """The error is one sentence."""
    with pytest.raises(ValueError, match="is not a URL of Loki such as") as caught:
        LokiTarget(url=url)
    assert repr(url) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    """They appear neither in an error nor where a target is printed."""
    with pytest.raises(ValueError, match="separately") as caught:
        LokiTarget(url="http://me:secret@loki")
    assert "secret" not in str(caught.value)
    target = LokiTarget(url="http://h", username="me", password="secret")
    assert "secret" not in repr(target)
    assert "secret" not in repr(LokiTarget(url="http://h", token="secret"))


@pytest.mark.parametrize(
    ("who", "error"),
    [
        ({"username": "me", "token": "t"}, "not both"),
        ({"password": "me", "token": "t"}, "not both"),
        ({"username": "m:e"}, "has a colon"),
        ({"tenant": "a\r\nEvil: 1"}, "tenant for Loki contains characters other than printable"),
        ({"token": "ü"}, "token for Loki contains characters other than printable"),
    ],
)
def test_what_can_not_be_sent_is_said_at_once(who: dict[str, str], error: str) -> None:
    """The error does not wait until the first line is on its way."""
    with pytest.raises(ValueError, match=error):
        LokiTarget(url="http://h", **who)  # type: ignore[arg-type]


def test_the_headers_say_who_calls() -> None:
    """They name a tenant, and have basic or bearer authentication."""
    assert LokiTarget(url="http://h").build_headers() == {}
    assert LokiTarget(url="http://h", tenant="a|b", token="t").build_headers() == {
        "X-Scope-OrgID": "a|b",
        "Authorization": "Bearer t",
    }
    basic = LokiTarget(url="http://h", username="me", password="pö:s").build_headers()
    assert basic == {"Authorization": "Basic bWU6cMO2OnM="}


def test_an_authority_of_ones_own_takes_the_place_of_the_system_s(tmp_path: Path) -> None:
    """Only its certificates are trusted then."""
    certificates = Certificates(tmp_path)
    assert LokiTarget(url="https://h").build_tls() is True
    context = LokiTarget(url="https://h", ca_file=Path(certificates.cacert)).build_tls()
    assert isinstance(context, ssl.SSLContext)
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize("name", ["missing", "nonsense"])
def test_a_file_without_certificates_is_named(tmp_path: Path, name: str) -> None:
    """The error comes when the target is made."""
    path = getattr(Certificates(tmp_path), name)
    with pytest.raises(ValueError, match="contains no readable PEM certificates") as caught:
        LokiTarget(url="https://h", ca_file=Path(path))
    assert str(caught.value).startswith(path)
