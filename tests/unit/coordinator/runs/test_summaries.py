import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from oku_coordinator.ledger.storage.records import RunRecord, Snapshot
from oku_coordinator.ledger.storage.run_account import Account
from oku_coordinator.runs.summaries import build_summary
from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import Lengths
from oku_core.accounting.run_state import RunState
from oku_core.results.summary import Flag, ProcessSummary, Summary, WorkerSummary
from oku_core.spec.spec import Spec

WORKER = WorkerSummary(name="w1", requests=100, cpu_s=0.5, peak_rss_mb=80.0, lost=False)


PROCESS = ProcessSummary(name="broker", peak_mb=8.0)


def build_snapshot(*, leased: int = 0, breach: str | None = None, **changes: Any) -> Snapshot:
    """A run that is completed after 10 s, with 98 ok and two others, changed as wanted."""
    histogram = Histogram()
    for number in range(1, 100):
        histogram.record(1000 * number)
    values: dict[str, Any] = {
        "run": "r1", "name": "soak", "requests": 100, "engine": "aiohttp", "target": "",
        "spec": Spec(requests=100), "state": RunState.COMPLETED, "reason": "",
        "created_at": 0.0, "started_at": 1_769_965_512.25, "ended_at": 1_769_965_522.25, "active_s": 10.0,
        "active_since": None, "windows": 1, "last_checkpoint_at": None, "resent_at_most": 0, "served": None,
        "outcomes": [98, 1, 1, 0, 0, 0], "is_broken": False, "is_published": False, "number": 1,
        "watched_s": 0.0, "underfilled_s": 0.0,
    }  # fmt: skip
    record = RunRecord(**values | changes)
    return Snapshot(
        record=record,
        lengths=Lengths(pending=record.requests - 100 - leased, leased=leased, accounted=100),
        account=Account([98, 1, 1, 0, 0, 0], {"500": 1, "200": 98}, 1300, histogram),
        workers=[WORKER], processes=[PROCESS], flags=[(Flag.LOOP_LAG, 10, 0.2)], breach=breach,
    )  # fmt: skip


def list_imbalances(summary: Summary) -> list[str]:
    """The reasons why the account does not balance."""
    return [validity.detail for validity in summary.validity if validity.flag == Flag.UNBALANCED]


def test_a_summary_has_everything_that_is_kept() -> None:
    """It has the account, the statistics, the workers and the flags."""
    summary = build_summary(build_snapshot(), 0.0)
    assert (summary.run, summary.name, summary.state) == ("r1", "soak", RunState.COMPLETED)
    assert (summary.requests, summary.accounted, summary.resent_at_most) == (100, 100, 0)
    outcomes = msgspec.to_builtins(summary.outcomes)
    assert outcomes == {
        "ok": 98, "unexpected_status": 1, "timeout": 1, "connect_error": 0, "disconnected": 0,
        "protocol_error": 0,
    }  # fmt: skip
    assert list(summary.statuses.items()) == [("200", 98), ("500", 1)]
    assert (summary.bytes_received, summary.workers, summary.servers) == (1300, [WORKER], None)
    assert (summary.processes, summary.reason) == ([PROCESS], "")
    assert summary.started_at == "2026-02-01T17:05:12.250Z"
    assert summary.ended_at == "2026-02-01T17:05:22.250Z"
    assert (summary.active_s, summary.throughput_rps) == (10.0, 10.0)
    assert (summary.latency_ms.min, summary.latency_ms.max) == (1.0, 99.0)
    assert hdr.decode(base64.b64decode(summary.histogram)).total == 99
    assert [validity.flag for validity in summary.validity] == [
        Flag.LOOP_LAG,
        Flag.UNANSWERED,
        Flag.SERVED_UNKNOWN,
    ]


def test_a_summary_is_what_its_schema_says() -> None:
    """Scripts rely on the published JSON Schema."""
    schema = Path(__file__).parents[4] / "docs" / "summary.schema.json"
    document = json.loads(msgspec.json.encode(build_summary(build_snapshot(), 0.0, ["waiting"])))
    assert document["notices"] == ["waiting"]
    jsonschema.validate(document, json.loads(schema.read_text()))


def test_a_run_that_has_not_begun_has_no_figures() -> None:
    """It has no time, no rate and no latency, but all six outcomes."""
    pending = build_snapshot(
        state=RunState.PENDING, started_at=None, ended_at=None, active_s=0.0, windows=0, outcomes=[0] * 6
    )
    lengths = Lengths(pending=100, leased=0, accounted=0)
    snapshot = replace(pending, lengths=lengths, account=Account(), workers=[], flags=[])
    summary = build_summary(snapshot, 5.0)
    assert (summary.started_at, summary.ended_at) == (None, None)
    assert (summary.active_s, summary.throughput_rps) == (0.0, 0.0)
    assert (summary.latency_ms.min, summary.latency_ms.p50, summary.latency_ms.max) == (None, None, None)
    assert sum(msgspec.to_builtins(summary.outcomes).values()) == 0
    assert summary.validity == []


def test_the_rate_of_a_run_is_over_its_activity_so_far() -> None:
    """The open window counts."""
    summary = build_summary(
        build_snapshot(state=RunState.RUNNING, active_since=100.0, ended_at=None, spec=Spec(requests=200)),
        110.0,
    )
    assert (summary.active_s, summary.throughput_rps) == (20.0, 5.0)


@pytest.mark.parametrize(
    ("served", "resent_at_most", "imbalances"),
    [
        (100, 0, []),
        (98, 0, []),
        (107, 7, []),
        (97, 0, ["98 are ok, the servers counted 97"]),
        (101, 0, ["the servers counted 101, accounted are 100 and resent at most 0"]),
    ],
)
def test_what_the_servers_counted_must_agree(served: int, resent_at_most: int, imbalances: list[str]) -> None:
    """It is no less than what was ok, and no more than what is accounted or may have been resent."""
    summary = build_summary(build_snapshot(served=served, resent_at_most=resent_at_most), 0.0)
    assert summary.servers is not None
    assert summary.servers.served == served
    assert list_imbalances(summary) == imbalances


@pytest.mark.parametrize("state", [RunState.PENDING, RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING])
def test_what_the_servers_counted_is_not_compared_while_requests_are_under_way(state: RunState) -> None:
    """The two counts are not of the same instant."""
    spec = Spec(requests=200)
    assert list_imbalances(build_summary(build_snapshot(state=state, served=3, spec=spec), 0.0)) == []


def test_what_is_leased_may_have_been_served() -> None:
    """A run that failed has active leases whose requests count nowhere."""
    spec = Spec(requests=200)
    snapshot = build_snapshot(state=RunState.FAILED, served=150, leased=50, spec=spec)
    assert list_imbalances(build_summary(snapshot, 0.0)) == []
    snapshot = build_snapshot(state=RunState.FAILED, served=151, leased=50, spec=spec)
    assert len(list_imbalances(build_summary(snapshot, 0.0))) == 1


def test_a_breach_is_told() -> None:
    """The summary has the words of the check."""
    summary = build_summary(build_snapshot(breach="10 are not 11"), 0.0)
    assert list_imbalances(summary) == ["10 are not 11"]


def test_a_run_in_several_windows_says_so() -> None:
    """A run in which requests may have been resent says so, too."""
    summary = build_summary(build_snapshot(windows=2, resent_at_most=5), 0.0)
    flags = {validity.flag for validity in summary.validity}
    assert {Flag.INTERRUPTED, Flag.RESENT} <= flags
