"""Checks that Loki has of a run what the ledger has, each line once."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.kit.loki.loki_queries import LokiQueries

from oku_coordinator.ledger import Ledger
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
    workers = {worker["name"]: worker["requests"] for worker in summary["workers"] if worker["requests"]}
    assert sum_up(loki, run, "range", "requests", by="worker") == workers
    leases = [line["lease"] for line in fetch(loki, run, "range")]
    assert len(set(leases)) == len(leases)
    published = fetch(loki, run, "summary")[-1]
    for field in ("run", "state", "accounted", "outcomes", "statuses", "latency_ms", "resent_at_most"):
        assert published[field] == summary[field], field


def assert_ticks_agree(loki: LokiQueries, run: str) -> None:
    """The buckets of the heatmap hold what the ticks say was answered."""
    ticks = fetch(loki, run, "tick")
    answered = sum(tick["ok"] + tick["unexpected_status"] for tick in ticks)
    assert answered
    assert sum(line["requests"] for line in fetch(loki, run, "latency")) == answered
    assert sum_up(loki, run, "latency", "requests") == {"": answered}
    assert all(
        tick["accounted"] + tick["leased"] + tick["pending"] == tick["requests_total"] for tick in ticks
    )


def assert_events(loki: LokiQueries, ledger_file: Path, run: str) -> Counter[str]:
    """The events in Loki are those of the ledger; how many there are of each type."""
    ledger = Ledger(ledger_file, read_only=True)
    try:
        kept = [event.text for event in ledger.history.fetch(run).events]
    finally:
        ledger.close()
    events = fetch(loki, run, "event")
    assert [event["text"] for event in events] == kept
    return Counter(event["type"] for event in events)
