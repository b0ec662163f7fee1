import pytest

from oku_core.spec.spec import Spec
from oku_workers.engines import window
from oku_workers.engines.window import FILES_BESIDE, choose_window, describe_lowered_window


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
    monkeypatch.setattr(window, "read_open_files", lambda: files)
    spec = Spec(concurrency=concurrency, requests=requests)
    assert choose_window(spec) == expected
    assert bool(describe_lowered_window(spec)) == (expected < min(concurrency, requests))


def test_only_the_system_lowers_a_window_in_a_way_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with fewer requests than it may have in flight is nothing to warn of."""
    monkeypatch.setattr(window, "read_open_files", lambda: 1000)
    assert describe_lowered_window(Spec(concurrency=5000, requests=10)) == ""
    assert describe_lowered_window(Spec(concurrency=5000, requests=2000)) == (
        "936 requests are in flight, not 2000: only 1000 open files are allowed"
    )
