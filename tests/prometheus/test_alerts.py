"""The alerts of the chart, evaluated by Prometheus' own rule engine over what a coordinator exposes."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kit.coordinators.transactions import change
from tests.prometheus.programs import build_program
from tests.unit.chart.rendering import find_kind, render

from oku_coordinator.assembly import Assembly
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.storage_health import Space
from oku_coordinator.settings import CoordinatorSettings
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.messaging.credentials import Credential, CredentialFault
from oku_core.spec.spec import Spec

MINUTES = 40
TARGET = 'namespace="load",job="oku-coordinator",instance="10.0.0.7:8700"'
UP = f"up{{{TARGET}}}"
Scrape = dict[str, float]
"""The values of series by their names with labels."""


@pytest.fixture(scope="module")
def program() -> Path:
    """Evaluates rules."""
    return build_program("alerts", "./alerts")


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules of the chart, as the operator hands them to Prometheus."""
    (rule,) = find_kind(render({"coordinator": {"prometheusRule": {"enabled": True}}}), "PrometheusRule")
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(yaml.safe_dump(rule["spec"]))
    return path


@contextmanager
def open_parts(folder: Path) -> Iterator[Assembly]:
    """The parts of a coordinator whose broker is never asked."""
    folder.mkdir()
    settings = CoordinatorSettings(
        broker_url="redis://127.0.0.1:1", message_key=b"k" * 16, data_dir=folder, token="t"
    )
    parts = Assembly(settings)
    try:
        yield parts
    finally:
        parts.base.close()


def scrape(parts: Assembly) -> Scrape:
    """What Prometheus stores of one scrape; histograms are left out."""
    body = parts.base.telemetry.metrics.expose()[0].decode()
    found = re.findall(r"^(oku_\w+)(?:\{(.*)\})? (\S+)$", body, re.MULTILINE)  # own text: our metrics
    return {UP: 1.0} | {
        f"{name}{{{labels and labels + ','}{TARGET}}}": float(value)
        for name, labels, value in found
        if not name.endswith(("_bucket", "_created"))
    }


def evaluate(program: Path, rules: Path, before: Scrape, after: Scrape) -> dict[str, Any]:
    """The alerts that fire while every value goes evenly from one scrape to the other."""
    lines = [
        f"  {series} {before[series]:f}{(value - before[series]) / MINUTES:+.12f}x{MINUTES}"
        for series, value in after.items()
    ]
    command = [str(program), str(rules), str(MINUTES)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fired: dict[str, Any] = json.loads(done.stdout)
    return fired


def begin_run(parts: Assembly, workers: int) -> None:
    """A run is active."""
    change(parts.base.ledger, create_run, "r1", Spec(requests=100), parts.base.clock.now())
    change(parts.base.ledger, change_state, "r1", RunState.RUNNING, parts.base.clock.now())
    parts.base.telemetry.metrics.show_workers(workers)


def fall_behind(parts: Assembly) -> None:
    """Loki takes lines, but fewer than come."""
    parts.base.telemetry.metrics.count_lines("accepted", 1000)
    parts.base.telemetry.metrics.show_outbox(100_000, 10_000_000)


def submit_early(parts: Assembly) -> None:
    """A run has waited for an hour."""
    change(parts.base.ledger, create_run, "r1", Spec(requests=100), parts.base.clock.now() - 3600.0)


def refuse_callers(parts: Assembly) -> None:
    """Somebody tries tokens, twice a second."""
    for _ in range(2 * 60 * MINUTES):
        parts.base.telemetry.metrics.count_refusal(Credential.TOKEN, CredentialFault.WRONG)


def lose_workers(parts: Assembly) -> None:
    """A worker dies every few minutes."""
    for _ in range(8):
        parts.base.telemetry.metrics.count_expired(ExpiryReason.WORKER_LOST)


LASTING: Mapping[str, Callable[[Assembly], None]] = {
    "OkuLedgerCannotBeWritten": lambda parts: parts.base.ledger.storage.record_space(Space(0, 1 << 30)),
    "OkuRunWithoutWorkers": lambda parts: begin_run(parts, workers=0),
    "OkuRunWaits": submit_early,
    "OkuLokiFallsBehind": lambda parts: parts.base.telemetry.metrics.show_outbox(10, 1000),
}
"""For each alert, a state of the coordinator that lasts."""
GROWING: Mapping[str, Callable[[Assembly], None]] = {
    "OkuLokiFallsBehind": fall_behind,
    "OkuLokiLinesLost": lambda parts: parts.base.telemetry.metrics.count_lines("dropped", 1000),
    "OkuWorkersLost": lose_workers,
    "OkuCallersRefused": refuse_callers,
}
"""And what happens all the time from a scrape to one that is much later."""


@pytest.mark.timeout(900)
def test_nothing_fires_while_all_is_well(program: Path, rules: Path, tmp_path: Path) -> None:
    """Neither with a paused run and no worker, nor while one runs, another waits, and lines go to Loki."""
    with open_parts(tmp_path / "data") as parts:
        change(parts.base.ledger, create_run, "r0", Spec(requests=100), parts.base.clock.now() - 7200.0)
        for state in (RunState.RUNNING, RunState.PAUSED):
            change(parts.base.ledger, change_state, "r0", state, parts.base.clock.now())
        idle = scrape(parts)
        begin_run(parts, workers=2)
        change(parts.base.ledger, create_run, "r2", Spec(requests=100), parts.base.clock.now() - 3600.0)
        parts.base.telemetry.metrics.show_outbox(2000, 1000)
        before = scrape(parts)
        parts.base.telemetry.metrics.count_lines("accepted", 100_000)
        parts.base.telemetry.metrics.show_outbox(10, 1000)
        after = scrape(parts)
    assert evaluate(program, rules, idle, idle) == {}
    assert evaluate(program, rules, before, after) == {}


@pytest.mark.timeout(900)
def test_each_alert_fires_for_what_it_is_about_and_no_other_does(
    program: Path, rules: Path, tmp_path: Path
) -> None:
    """Over the series of a coordinator to which that has happened."""
    cases: list[tuple[str, Scrape, Scrape]] = [
        ("OkuCoordinatorAbsent", {}, {}),
        ("OkuCoordinatorAbsent", {UP: 0.0}, {UP: 0.0}),
    ]
    for number, (name, happen) in enumerate([*LASTING.items(), *GROWING.items()]):
        with open_parts(tmp_path / f"{number}") as parts:
            before = scrape(parts)
            happen(parts)
            after = scrape(parts)
        cases.append((name, after if happen is LASTING.get(name) else before, after))
        if name == "OkuLedgerCannotBeWritten":
            sizes = {series: 100.0 for series in after if "oku_data_size" in series}
            free = {series: 9.0 for series in after if "oku_data_available" in series}
            cases.append(("OkuDiskNearlyFull", before | sizes | free, before | sizes | free))
    fired = [(name, evaluate(program, rules, before, after)) for name, before, after in cases]
    assert [(name, list(alerts)) for name, alerts in fired] == [(name, [name]) for name, _ in fired]
    listed = {rule["alert"] for rule in yaml.safe_load(rules.read_text())["groups"][0]["rules"]}
    assert {name for name, _ in fired} == listed, "an alert was not tried"
    for name, alerts in fired:
        alert = alerts[name]
        assert alert["labels"]["severity"] in {"critical", "warning"}
        assert alert["labels"]["namespace"] == "load"
        assert all(alert["annotations"][text].endswith(".") for text in ("summary", "description"))
        assert not any("<" in text or "{{" in text for text in alert["annotations"].values()), alert


@pytest.mark.timeout(900)
def test_rules_that_prometheus_refuses_are_found(program: Path, tmp_path: Path) -> None:
    """The check can fail."""
    path = tmp_path / "rules.yaml"
    path.write_text(
        yaml.safe_dump({"groups": [{"name": "oku", "rules": [{"alert": "Oku", "expr": "rate(up)"}]}]})
    )
    with pytest.raises(AssertionError, match="expected type range vector"):
        evaluate(program, path, {UP: 1.0}, {UP: 1.0})
