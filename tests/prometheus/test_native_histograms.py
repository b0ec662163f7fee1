"""What `/metrics` writes in protobuf, held against the parser of Prometheus itself."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.parts import build_open_part
from tests.kit.outcomes import make_counts
from tests.prometheus.programs import build_program

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.telemetry.prometheus.protobuf_format import CONTENT_TYPE
from oku_coordinator.telemetry.prometheus.run_metrics import RunFigures
from oku_coordinator.telemetry.prometheus.target_metrics import build_target_figures
from oku_core.spec.parser import Source, parse_spec

TARGETS = [{"name": "item", "url": "/item"}, {"name": "buy", "url": "/buy"}]
SPEC = parse_spec(
    Source(None, {"requests": 9000, "rate": "100/s", "base-url": "http://shop.test", "targets": TARGETS})
)
PARTS = {
    ("warm-up", "item"): [1, 2, 2_047, 2_048, 500_000, 1_000_000],
    ("main", "item"): [int(random.Random(7).lognormvariate(9, 2)) for _ in range(5_000)],
    ("main", "buy"): [0, 0, 3_600_000_000],
}


@pytest.fixture(scope="module")
def parser() -> Path:
    """A program that reads a scrape as Prometheus does; compiled anew only when it has changed."""
    return build_program("parser", ".")


@pytest.fixture
def metrics() -> Metrics:
    """Those of a run with two targets, as a coordinator has them."""
    accounts = RunAccount()
    for name, latencies_us in PARTS.items():
        accounts.parts.open(name).add(build_open_part(latencies_us))
    metrics = Metrics()
    metrics.count_messages([], 0.25)
    metrics.show_targets(lambda: build_target_figures("r1", SPEC, accounts))
    figures = RunFigures(
        run="r1", requests=(5, 4, 3, 2), outcomes=make_counts(5), not_sent=[1, 2, 3], queued_s=1.5
    )
    metrics.show_runs(lambda: [figures])
    return metrics


def parse(parser: Path, scrape: bytes) -> subprocess.CompletedProcess[bytes]:
    """What Prometheus makes of a scrape."""
    return subprocess.run([parser], input=scrape, capture_output=True, check=False)


def find(natives: list[dict[str, Any]], name: str, target: str) -> dict[str, Any]:
    """The one native histogram with this name and target."""
    labels = {"__name__": name, "run": "r1", "target": target}
    [found] = [native for native in natives if native["labels"] == labels]
    return found


@pytest.mark.timeout(600)
def test_prometheus_reads_native_histograms(parser: Path, metrics: Metrics) -> None:
    """They are valid, one for each target and kind of time, and within the error that is promised."""
    result = parse(parser, metrics.expose(CONTENT_TYPE)[0])
    assert result.returncode == 0, result.stderr
    natives = json.loads(result.stdout)["natives"]
    assert len(natives) == 6
    for target in ("item", "buy"):
        times_s = sorted(
            latency_us / 1_000_000
            for (_, name), latencies_us in PARTS.items()
            for latency_us in latencies_us
            if name == target
        )
        native = find(natives, "oku_target_latency_seconds", target)
        assert native["count"] == len(times_s)
        assert native["sum_s"] == pytest.approx(sum(times_s))
        counted = 0
        for bucket in native["buckets"]:
            highest_s = times_s[counted + bucket["count"] - 1]
            assert bucket["lower_s"] < times_s[counted] <= highest_s < bucket["upper_s"] * (1 + 1 / 1024)
            counted += bucket["count"]
        assert counted == len(times_s)


@pytest.mark.timeout(600)
def test_prometheus_reads_the_same_from_protobuf_as_from_text(parser: Path, metrics: Metrics) -> None:
    """Counters, gauges and classic histograms are there in both, with the same names and values."""
    result = parse(parser, metrics.expose(CONTENT_TYPE)[0])
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    text = metrics.expose()[0].decode()
    types = dict(line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE "))
    assert found["types"].items() <= types.items()
    lines = [line for line in text.splitlines() if line[0] != "#" and "_created" not in line]
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    assert {describe(series["labels"]): series["value"] for series in found["series"]} == values


def describe(labels: dict[str, str]) -> str:
    """A series as text names it."""
    name = labels.pop("__name__")
    listed = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{listed}}}" if listed else name


@pytest.mark.timeout(600)
def test_what_prometheus_refuses_is_found(parser: Path, metrics: Metrics) -> None:
    """The check can fail: a scrape that is cut off is not valid."""
    assert parse(parser, metrics.expose(CONTENT_TYPE)[0][:-1]).returncode != 0
