from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from tests.kit.loki.dashboards import load_dashboards
from tests.kit.runs.summaries import build_summary

from oku_cli.views.dashboard_link import build_live_link, build_summary_link, parse_grafana_url
from oku_core.accounting.run_state import REST_STATES, RunState
from oku_core.spec.spec import Engine
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.request_summary import OutcomeCounts
from oku_core.summary.validity import Flag, Validity

GRAFANA = "http://127.0.0.1:3000"
SUMMARY = build_summary(
    run="261122-201929-84jt", name="", state=RunState.COMPLETED, engine=Engine.AIOHTTP,
    requests=1, accounted=1, resent_at_most=0,
    outcomes=OutcomeCounts(
        ok=1, unexpected_status=0, timeout=0, connect_error=0, disconnected=0, protocol_error=0
    ),
    statuses={}, bytes_received=1,
    started_at=datetime.fromtimestamp(1000.25, UTC).isoformat(),
    ended_at=datetime.fromtimestamp(1060.5, UTC).isoformat(),
    active_s=1.0, throughput_rps=1.0, latency_ms=LatencySummary(), workers=[], servers=None,
    validity=[],
)  # fmt: skip


def test_a_grafana_has_an_address() -> None:
    """A slash at the end is not doubled."""
    for text, address in [
        (GRAFANA, GRAFANA),
        (f"{GRAFANA}/", GRAFANA),
        ("https://host/grafana", "https://host/grafana"),
        ("https://host/grafana//", "https://host/grafana"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
    ]:
        assert parse_grafana_url(text) == address
    for text, message in [
        ("", "has no scheme"),
        ("127.0.0.1:3000", "has no scheme, write http://127.0.0.1:3000"),
        ("ftp://host", "has the scheme ftp"),
        ("http://", "has no host"),
        ("http://host:99999", "has a port that is not between 1 and 65535"),
        ("http://ho st/", "contains whitespace"),
        ("http://me:secret@host/", "has a user"),
        ("http://host/?orgId=1", "has a query"),
        ("http://host/?", "has a query"),
        ("http://host/#x", "has a fragment"),
        ("http://host/{i}", "has a query or a placeholder"),
    ]:
        # What is not the address of a grafana is refused. A password is not shown.
        with pytest.raises(ValueError, match=message) as raised:
            parse_grafana_url(text)
        assert "secret" not in str(raised.value)


def test_a_link_is_of_the_dashboard_and_of_the_time_of_the_run() -> None:
    """Their names stand in the dashboards and here."""
    link = urlsplit(build_summary_link(f"{GRAFANA}/grafana", SUMMARY, 5000.0))
    dashboard = load_dashboards()[link.path.removeprefix("/grafana/d/")]
    query = parse_qs(link.query)
    chosen = {f"var-{variable['name']}" for variable in dashboard["templating"]["list"]}
    assert set(query) - {"from", "to"} == {"var-run"} <= chosen
    assert query["var-run"] == [SUMMARY.run]
    # A run that is over or paused may lack a time.
    paused = msgspec.structs.replace(SUMMARY, state=RunState.PAUSED, ended_at=None, active_s=20.0)
    assert build_summary_link(GRAFANA, paused, 5000.0).endswith("from=990250&to=1030250")
    pauses = Validity(flag=Flag.INTERRUPTED, detail="", requests=1)
    again = msgspec.structs.replace(paused, validity=[pauses])
    assert build_summary_link(GRAFANA, again, 5000.0).endswith("from=990250&to=5010000")
    unbegun = msgspec.structs.replace(SUMMARY, state=RunState.CANCELLED, started_at=None)
    assert build_summary_link(GRAFANA, unbegun, 5000.0).endswith("from=1050500&to=1070500")
    # A link shows the time of a run with a margin. It goes on with a run that is not at rest.
    for state in RunState:
        over = msgspec.structs.replace(SUMMARY, state=state)
        query = parse_qs(urlsplit(build_summary_link(GRAFANA, over, 5000.0)).query)
        assert query["from"] == ["990250"]
        assert query["to"] == ["1070500" if state in REST_STATES else "now"]
    # The link of a run that begins goes on with it. It has the margin at its begin alone.
    assert build_live_link(GRAFANA, "r 1", 1000.0) == f"{GRAFANA}/d/oku-run?var-run=r+1&from=990000&to=now"
