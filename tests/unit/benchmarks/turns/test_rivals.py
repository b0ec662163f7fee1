from collections.abc import Sequence

import pytest

from oku_benchmarks.turns.rivals import H2LOAD, HTTP2_RIVALS, K6, OHA, RIVALS, WRK, Effort

BASE = "http://127.0.0.1:8080"


def build_command(name: str, *more_urls: str) -> Sequence[str]:
    """What a tool is started with."""
    effort = Effort(url=f"{BASE}/a/{{i}}", connections=100, seconds=4, requests=0, more_urls=more_urls)
    return RIVALS[name].build("/bin/it", effort)


@pytest.mark.parametrize("name", [WRK, H2LOAD])
def test_one_url_is_the_last_word(name: str) -> None:
    """No script takes part, which would cost wrk time."""
    assert build_command(name)[-1] == f"{BASE}/a/1"
    assert "-s" not in build_command(name)


def test_h2load_is_told_all_urls_that_it_asks_in_turn() -> None:
    """It does so by itself."""
    assert build_command(H2LOAD, f"{BASE}/b/{{i}}")[-2:] == [f"{BASE}/a/1", f"{BASE}/b/1"]


def test_wrk_is_told_all_paths_by_its_script() -> None:
    """The first URL says where the server is, the script gets the paths behind the dashes."""
    command = build_command(WRK, f"{BASE}/b/{{i}}")

    dashes = command.index("--")
    assert f"{BASE}/a/1" in command[:dashes]
    assert command[dashes + 1 :] == ["/a/1", "/b/1"]


def build_http2_command(name: str) -> str:
    """What a tool is started with for 10 connections with 5 requests in flight on each."""
    effort = Effort(url=f"{BASE}/{{i}}", connections=10, seconds=4, requests=0, streams=5)
    return " ".join(HTTP2_RIVALS[name].build("/bin/it", effort))


def test_each_tool_has_as_many_requests_in_flight_in_http2() -> None:
    """On ten connections, or, with k6, with a user for each."""
    assert "-c10 -m5" in build_http2_command(H2LOAD)
    assert "-c 10" in build_http2_command(OHA)
    assert "-p 5" in build_http2_command(OHA)
    assert "--vus 50" in build_http2_command(K6)


def test_no_tool_speaks_http1_where_http2_is_measured() -> None:
    """h2load does so only if it is told, oha unless it is told."""
    assert "--h1" not in build_http2_command(H2LOAD)
    assert "--http2" in build_http2_command(OHA)
