import pytest

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import parse_urls
from oku_workers.engines.contract import engine_protocol
from oku_workers.engines.contract.engine_protocol import (
    FILES_BESIDE,
    choose_window,
    describe_lowered_window,
    limit_window,
)


@pytest.mark.parametrize(
    ("concurrency", "requests", "files", "expected"),
    [
        (100, 1000, 1 << 20, 100),
        (1_000_000, 10, 1 << 20, 10),
        (1_000_000, 10**15, 20_000, 20_000 - FILES_BESIDE),
        (100, 1000, 100 + FILES_BESIDE, 100),
        (100, 1000, 10, 1),
    ],
)
def test_a_window_is_no_larger_than_requests_and_files(
    monkeypatch: pytest.MonkeyPatch, concurrency: int, requests: int, files: int, expected: int
) -> None:
    """It is never empty: a run goes on with one request at a time."""
    monkeypatch.setattr(engine_protocol, "read_open_files", lambda: files)
    spec = Spec(concurrency=concurrency, requests=requests)
    assert limit_window(choose_window(spec), spec) == expected


def test_a_window_is_lowered_where_the_system_or_the_spec_has_too_few_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line says why."""
    monkeypatch.setattr(engine_protocol, "read_open_files", lambda: 1000)
    assert describe_lowered_window(936, 936, Spec()) == ""
    assert describe_lowered_window(936, 2000, Spec()) == (
        "936 requests are in flight, not 2000: only 1000 open files are allowed"
    )
    # A window may be empty for a time. Nothing but time or a share makes it so.
    monkeypatch.setattr(engine_protocol, "read_open_files", lambda: 10)
    assert (limit_window(0, Spec()), limit_window(5, Spec())) == (0, 1)
    # Over http2 a file is that of several requests.
    monkeypatch.setattr(engine_protocol, "read_open_files", lambda: 4 + FILES_BESIDE)
    assert limit_window(1000, Spec(engine=Engine.NGHTTP2, streams=100)) == 400
    assert limit_window(300, Spec(engine=Engine.NGHTTP2, streams=100)) == 300
    assert limit_window(1000, Spec(streams=100)) == 4
    # Over http2 a spec says how many connections there are.
    monkeypatch.setattr(engine_protocol, "read_open_files", lambda: 1000)
    urls = parse_urls(["http://a/x", "http://a/y", "http://b/"])
    spec = Spec(urls=urls, engine=Engine.NGHTTP2, streams=10, connections=3)
    lowered = limit_window(200, spec)
    assert lowered == 60
    assert describe_lowered_window(lowered, 200, spec) == (
        "60 requests are in flight, not 200: the spec has 3 connections with 10 streams each"
    )
    # A worker with a share of the connections has the requests of those.
    assert limit_window(200, spec, 1) == 20
