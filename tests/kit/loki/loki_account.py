"""Checks that Loki has of a run what the ledger has, each line once."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.kit.coordinators.transactions import read
from tests.kit.loki.loki_queries import LokiQueries

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history
from oku_core.accounting.outcome import OUTCOMES


def sum_up(loki: LokiQueries, run: str, kind: str, field: str, by: str = "") -> dict[str, int]:
    """The sum of a field over all lines of a kind, as LogQL gives it, by a field or in one sum named ``."""
    extracted = f'{field}="{field}"' + (f', {by}="{by}"' if by else "")
    query = (
        f"sum by ({by}) (sum_over_time("
        f'{{app="oku", run="{run}", kind="{kind}"}} | json {extracted} | unwrap {field} [1d]))'
    )
    return {found["metric"].get(by, ""): int(float(found["value"][1])) for found in loki.query(query)}


def fetch(loki: LokiQueries, run: str, kind: str) -> list[dict[str, Any]]:
    """All lines of a kind, oldest first; each must be there once."""
    lines = loki.fetch_lines(f'{{app="oku", run="{run}", kind="{kind}"}}')
    assert len(set(lines)) == len(lines), f"{len(lines) - len(set(lines))} lines of {kind} came twice"
    return [json.loads(line) for _, line in lines]


def assert_published(loki: LokiQueries, summary: dict[str, Any]) -> None:
    """What lasts is in Loki as it is in the summary, to the last request, and no line is there twice."""
    run = summary["run"]
    assert sum_up(loki, run, "range", "requests") == {"": summary["accounted"]}
    for outcome in OUTCOMES:
        assert sum_up(loki, run, "range", outcome) == {"": summary["outcomes"][outcome]}
    assert sum_up(loki, run, "range", "bytes_received") == {"": summary["bytes_received"]}
    assert sum_up(loki, run, "status", "requests", by="status") == summary["statuses"]
    for cause, requests in summary["not_sent"].items():
        assert sum_up(loki, run, "range", f"not_sent_{cause}") == {"": requests}, cause
    workers = {worker["name"]: worker["requests"] for worker in summary["workers"] if worker["requests"]}
    by_worker = sum_up(loki, run, "range", "requests", by="worker")
    # What nobody sent, or died with a worker, names none.
    unsent = by_worker.pop("", 0)
    assert by_worker == workers
    assert unsent == summary["accounted"] - sum(workers.values())
    ranges = fetch(loki, run, "range")
    assert unsent == sum(line["requests"] for line in ranges if "lease" not in line)
    parts = [(line["lease"], line.get("phase"), line.get("target")) for line in ranges if "lease" in line]
    assert len(set(parts)) == len(parts)
    _assert_phases_published(loki, summary, ranges)
    _assert_targets_published(loki, summary, ranges)
    published = fetch(loki, run, "summary")[-1]
    for field in ("run", "state", "accounted", "outcomes", "statuses", "latency_ms", "resent_at_most"):
        assert published[field] == summary[field], field


def _assert_phases_published(
    loki: LokiQueries, summary: dict[str, Any], ranges: Sequence[Mapping[str, Any]]
) -> None:
    """Ranges sum to each phase, and each time a run comes to rest its phases have a line each."""
    phases = summary["phases"]
    for phase in phases:
        own = [line for line in ranges if line["phase"] == phase["name"]]
        for outcome in OUTCOMES:
            assert sum(line[outcome] for line in own) == phase["outcomes"][outcome], (phase["name"], outcome)
    published = fetch(loki, summary["run"], "phase")[-len(phases) :] if phases else []
    names = ("requests", "due", "completed", "sent_rps", "completed_rps", "planned_rps")
    assert [(line["phase"], line["ok"], *(line.get(name) for name in names)) for line in published] == [
        (phase["name"], phase["outcomes"]["ok"], *(phase[name] for name in names)) for phase in phases
    ]


def _assert_targets_published(
    loki: LokiQueries, summary: dict[str, Any], ranges: Sequence[Mapping[str, Any]]
) -> None:
    """So do they to each target, and to each target of a phase."""
    targets = summary["targets"]
    assert {line["target"] for line in ranges if "target" in line} == {
        target["name"] for target in targets if target["requests"]
    }
    for phase in [{"name": None, "targets": targets}, *summary["phases"]]:
        for target in phase["targets"]:
            own = [
                line
                for line in ranges
                if line["target"] == target["name"] and phase["name"] in (None, line["phase"])
            ]
            for outcome in OUTCOMES:
                assert sum(line[outcome] for line in own) == target["outcomes"][outcome], target["name"]
    published = fetch(loki, summary["run"], "target")[-len(targets) :] if targets else []
    assert [(line["target"], line["requests"], line["ok"], line["rate_rps"]) for line in published] == [
        (target["name"], target["requests"], target["outcomes"]["ok"], target["rate_rps"])
        for target in targets
    ]


def assert_ticks_agree(loki: LokiQueries, summary: dict[str, Any]) -> None:
    """The ticks sum to the account by outcome, as LogQL adds them and line by line.

    Their figures of the ledger and of progress are those of one second. The buckets of the heatmap are made
    of progress, and may hold less than what was answered, but not more.
    """
    run = summary["run"]
    ticks = fetch(loki, run, "tick")
    for outcome in OUTCOMES:
        assert sum_up(loki, run, "tick", outcome) == {"": summary["outcomes"][outcome]}, outcome
        assert sum(tick[outcome] for tick in ticks) == summary["outcomes"][outcome], outcome
    not_ended = summary["outcomes"]["not_sent"] + summary["outcomes"]["lost"]
    assert sum_up(loki, run, "tick", "requests_ended") == {"": summary["accounted"] - not_ended}
    whole = [tick for tick in ticks if "accounted" in tick]
    assert whole
    assert all(
        tick["accounted"] + tick["leased"] + tick["pending"] == tick["requests_total"]
        for tick in whole
        if "pending" in tick
    )
    assert all(tick["seconds"] > 0 for tick in whole)
    answered = summary["outcomes"]["ok"] + summary["outcomes"]["unexpected_status"]
    assert sum(line["requests"] for line in fetch(loki, run, "latency")) <= answered


def assert_events(loki: LokiQueries, ledger_file: Path, run: str) -> Counter[str]:
    """The events in Loki are those of the ledger; how many there are of each type."""
    ledger = Ledger(ledger_file, read_only=True)
    try:
        kept = [event.text for event in read(ledger, fetch_history, run).events]
    finally:
        ledger.close()
    events = fetch(loki, run, "event")
    assert [event["text"] for event in events] == kept
    return Counter(event["type"] for event in events)
