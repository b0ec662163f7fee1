"""A real run with several targets: its figures by target, while it is under way and at its end."""

import json
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import LocalRun, Start

SPEC = """
targets:
  - {name: item, weight: 8, url: "/items/{i}"}
  - {name: buy, weight: 2, method: POST, url: /cart, body: "{i}", expect: {status: 201}}
requests: 4000
rate: 500/s
delay: 5ms..20ms
warm-up: 1s
workers: 2
"""


def scrape(run: LocalRun, name: str) -> dict[tuple[str, str], float]:
    """The samples of a metric by target, and by outcome or bound."""
    stack = json.loads((run.data_dir / "stack.json").read_text())
    headers = {"Authorization": f"Bearer {stack['token']}"}
    request = urllib.request.Request(f"{stack['url']}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.labels["target"], sample.labels.get("outcome", sample.labels.get("le", ""))): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def assert_parts_sum_up(whole: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    """The counts of parts sum to those of the whole: requests, outcomes, statuses, bytes and timings."""
    assert sum(part["requests"] for part in parts) == sum(whole["outcomes"].values())
    for outcome, requests in whole["outcomes"].items():
        assert sum(part["outcomes"][outcome] for part in parts) == requests, outcome
    for status, requests in whole["statuses"].items():
        assert sum(part["statuses"].get(status, 0) for part in parts) == requests, status
    assert sum(part["bytes_received"] for part in parts) == whole["bytes_received"]
    for step, timing in whole["timing_ms"].items():
        assert sum(part["timing_ms"][step]["requests"] for part in parts) == timing["requests"], step


def test_targets_have_their_figures_under_way_and_in_the_end(start: Start, tmp_path: Path) -> None:
    """Prometheus sees counters and histograms that agree; in the end the targets sum to the run."""
    spec = tmp_path / "shop.yaml"
    spec.write_text(SPEC)
    run = start("run", str(spec))
    run.wait_for_accounted(1000)
    requests = scrape(run, "oku_target_requests_total")
    answered = scrape(run, "oku_target_latency_seconds_count")
    assert requests["item", "ok"] > requests["buy", "unexpected_status"] > 0
    assert requests["item", "unexpected_status"] == requests["buy", "ok"] == 0
    assert answered["item", ""] >= requests["item", "ok"]
    assert scrape(run, "oku_target_lateness_seconds_bucket")["buy", "+Inf"] > 0
    summary = run.finish()
    assert_completed(summary)
    item, buy = summary["targets"]
    assert (item["name"], item["requests"], buy["name"], buy["requests"]) == ("item", 3200, "buy", 800)
    assert (item["outcomes"]["ok"], buy["outcomes"]["unexpected_status"]) == (3200, 800)
    assert_parts_sum_up(summary, summary["targets"])
    for phase in summary["phases"]:
        assert_parts_sum_up(phase, phase["targets"])
    assert "worst target buy ok 0 %" in run.output
