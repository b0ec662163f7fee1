"""A run whose workers fetch its data from the coordinator: no volume and no ConfigMap is made for it."""

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until

_ROWS = 40_000
_WEIGHTS = {"item": 7, "shelf": 2, "gone": 1}
_SPEC = {
    "targets": [
        {"name": "item", "weight": 7, "url": "/items/{sku}"},
        {"name": "shelf", "weight": 2, "method": "POST", "url": "/shelves", "json": {"sku": "{sku}"}},
        # Delay servers answer with 200, so each of these fails.
        {"name": "gone", "weight": 1, "url": "/items/{sku}", "expect": {"status": 410}},
    ],
    "data": "skus.csv",
    "thresholds": ["ok >= 89%", "p99 of item < 30s", "ok of gone >= 1%"],
}
_STORED = "find /data/files -type f | wc -l"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a spec, and data of which no row is like another."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "spec.json").write_text(json.dumps(_SPEC))
    with (folder / "skus.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("sku",), *((f"sock {row}, grey",) for row in range(_ROWS))])
    return folder


@pytest.fixture(scope="module")
def summary(release: Release, folder: Path) -> dict[str, Any]:
    """That of the run over three workers; a threshold failed, and so does the command."""
    path = folder / "summary.json"
    flags = (
        "--workers",
        "3",
        "--servers",
        "1",
        "--engine",
        "httptools",
        "--quiet",
        "--summary-json",
        str(path),
    )
    command = release.build_oku("run", str(folder / "spec.json"), *flags, "--summary-json", str(path))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads(path.read_text())
    return summary


def count_stored(release: Release) -> int:
    """How many files the coordinator keeps beside its ledger."""
    [pod] = release.list_ready("coordinator")
    return int(release.exec(pod, "sh", "-c", _STORED))


def test_each_row_is_sent_once_by_workers_that_fetched_it(summary: dict[str, Any]) -> None:
    """Each target has its exact share of the rows; what fails is the target that expects another status."""
    assert_completed(summary)
    assert summary["requests"] == _ROWS
    assert len([worker for worker in summary["workers"] if worker["requests"]]) == 3
    share = _ROWS // sum(_WEIGHTS.values())
    assert {each["name"]: each["requests"] for each in summary["targets"]} == {
        name: weight * share for name, weight in _WEIGHTS.items()
    }
    assert summary["outcomes"]["unexpected_status"] == share
    assert [(each["reason"], each["requests"]) for each in summary["failures"]] == [("status 200", share)]


def test_failed_requests_are_listed_with_their_rows(release: Release, summary: dict[str, Any]) -> None:
    """The coordinator, which has the data, gives them; a request is shown as it was sent."""
    rows = list(csv.DictReader(release.oku("failures", summary["run"], "--csv").splitlines()))
    assert len(rows) == summary["outcomes"]["unexpected_status"]
    assert all(row["sku"] == f"sock {row['index']}, grey" for row in rows)
    shown = release.oku("show", summary["run"], "--index", rows[-1]["index"])
    assert f"GET /items/sock%20{rows[-1]['index']}%2C%20grey HTTP/1.1" in shown


def test_a_threshold_of_one_target_fails_the_run(summary: dict[str, Any]) -> None:
    """The others have passed."""
    assert summary["verdict"] == "failed"
    assert [each["verdict"] for each in summary["thresholds"]] == ["passed", "passed", "failed"]


@pytest.fixture(scope="module")
def again(release: Release, summary: dict[str, Any]) -> dict[str, Any]:
    """The summary of a run over what failed in the first one; nothing of it is ok, either."""
    command = release.build_oku("retry", summary["run"], "--quiet", "--json")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    again: dict[str, Any] = json.loads(done.stdout)
    return again


def test_failed_rows_are_sent_again_by_a_run_of_their_own(
    summary: dict[str, Any], again: dict[str, Any]
) -> None:
    """It takes the data that the coordinator has, and completes the first run."""
    assert_completed(again)
    assert again["requests"] == summary["outcomes"]["unexpected_status"]
    assert again["completes"]["run"] == summary["run"]


def test_files_go_with_the_last_run_that_needs_them(
    release: Release, summary: dict[str, Any], again: dict[str, Any]
) -> None:
    """Both runs have the same data."""
    before = count_stored(release)
    assert before > 0
    release.oku("rm", summary["run"])
    assert count_stored(release) == before
    release.oku("rm", again["run"])
    wait_until(lambda: count_stored(release) == 0, 60, "the files of removed runs are gone")
