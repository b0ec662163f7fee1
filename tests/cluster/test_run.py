"""A run over pods: what it leaves in the account, in the cluster, in Loki."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.kit.kubernetes.release import ROOT, Release, wait_until_published
from tests.kit.loki.loki_account import assert_published, assert_ticks_agree
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until

_REQUESTS = 400_000
_WORKERS = 4
_SERVERS = 2
_LOOK_S = 0.5


@pytest.fixture(scope="module")
def sizes() -> list[int]:
    """How many workers the Deployment was to have, change by change."""
    return []


@pytest.fixture(scope="module")
def summary(release: Release, sizes: list[int], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """That of a run over four workers against two delay servers, as `oku run --kube` gave it."""
    wait_until(lambda: release.count_wanted("workers") == 0, 90, "the workers are at rest")
    path = tmp_path_factory.mktemp("run") / "summary.json"
    flags = (
        "--requests", str(_REQUESTS), "--workers", str(_WORKERS), "--servers", str(_SERVERS),
        "--engine", "httptools", "--name", "four pods", "--quiet", "--summary-json", str(path),
    )  # fmt: skip
    sizes.append(0)
    with subprocess.Popen(release.build_oku("run", *flags), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            _note(sizes, release.count_wanted("workers"))
            time.sleep(_LOOK_S)
        assert process.returncode == 0
    summary: dict[str, Any] = json.loads(path.read_text())
    return summary


def _note(sizes: list[int], size: int) -> None:
    if sizes[-1] != size:
        sizes.append(size)


def test_requests_over_four_pods_are_accounted_once(summary: dict[str, Any]) -> None:
    """Each pod took its part, and the delay servers counted the same number."""
    assert_completed(summary)
    assert summary["requests"] == _REQUESTS
    assert summary["outcomes"]["ok"] == _REQUESTS
    assert len([worker for worker in summary["workers"] if worker["requests"]]) == _WORKERS
    assert summary["resent_at_most"] == 0
    assert summary["servers"] == {"served": _REQUESTS}


def test_workers_are_there_for_the_run_only(
    release: Release, summary: dict[str, Any], sizes: list[int]
) -> None:
    """None is there before it, four come at once, and all leave after it; so do delay servers."""
    assert summary
    wait_until(lambda: release.count_wanted("workers") == 0, 60, "the workers are scaled to none")
    _note(sizes, 0)
    assert sizes == [0, _WORKERS, 0]
    wait_until(lambda: release.count_wanted("servers") == 0, 30, "the delay servers are scaled to none")
    wait_until(lambda: not release.fetch_pods("workers"), 60, "the pods of workers are gone")


def test_loki_has_what_the_ledger_has(release: Release, summary: dict[str, Any]) -> None:
    """Sums of requests, outcomes, statuses and bytes agree, by worker as well, and no line is there twice."""
    with release.open_api() as api, release.open_loki() as loki:
        wait_until_published(api)
        assert_published(loki, summary)
        assert_ticks_agree(loki, summary)


def test_dashboards_are_those_that_are_tested(release: Release) -> None:
    """A ConfigMap has each of them as it lies in the chart, labelled for a Grafana's sidecar."""
    maps = release.cluster.fetch_all("configmaps", release.namespace, "grafana_dashboard=1")
    found = {name: json.loads(text) for each in maps for name, text in each["data"].items()}
    folder = ROOT / "charts" / "oku" / "dashboards"
    assert found == {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    assert found


def test_a_report_is_made_on_the_laptop(release: Release, summary: dict[str, Any], tmp_path: Path) -> None:
    """`oku report` writes one HTML file about a run in the cluster."""
    path = tmp_path / "report.html"
    release.oku("report", summary["run"], "--output", str(path))
    assert "four pods" in path.read_text()
