import pytest

from oku_cli.imports.curl.curl_flags import CurlFlag, read_flags


def test_flags_are_read_in_all_forms() -> None:
    """Long, short, in clusters, with the value behind them or apart."""
    words = ["-sSLk", "-XPUT", "-H", "a: b", "--data-raw", "-x", "-mo", "h", "--", "-u"]
    with pytest.raises(ValueError, match="-z: a spec cannot say this"):
        read_flags([*words[:6], "-z"])
    taken, ignored = read_flags([*words[:6], "-o", "f", "-m5", *words[-2:]])
    assert ignored == ["--silent", "--show-error", "--output"]
    assert taken == [
        CurlFlag("location"), CurlFlag("insecure"), CurlFlag("request", "PUT"), CurlFlag("header", "a: b"),
        CurlFlag("data-raw", "-x"), CurlFlag("max-time", "5"), CurlFlag("url", "-u"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-T", "f"], "-T: a spec cannot say this"),
        (["--next"], "--next: a spec cannot say this"),
        (["--unix-socket", "/x"], "--unix-socket: a spec cannot say this"),
        (["-H"], "-H: has no value"),
        (["--data"], "--data: has no value"),
    ],
)
def test_what_changes_the_request_and_cannot_be_said_is_refused(words: list[str], message: str) -> None:
    """It would be another request otherwise."""
    with pytest.raises(ValueError, match=message):
        read_flags(words)
