"""What Prometheus sees of runs that follow each other at once, and of the same runs after a restart."""

import re
import time
import urllib.request
from pathlib import Path

from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import exported_message_key
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.coordinators.run_series import list_run_series
from tests.kit.servers.arrival_target import run_arrival_target
from tests.kit.workers.worker_process import run_worker


def scrape(api: CoordinatorApi) -> dict[str, float]:
    """All series but histograms."""
    with urllib.request.urlopen(f"{api.url}/metrics", timeout=10) as answer:
        lines = re.findall(
            r"^(oku_\S+) (\S+)$", answer.read().decode(), re.MULTILINE
        )  # own text: our metrics
    return {name: float(value) for name, value in lines if "_bucket" not in name}


def test_metrics_have_each_run_exactly_and_no_counter_falls(tmp_path: Path) -> None:
    """Each is shorter than most scrape intervals; a coordinator that was started anew shows the same."""
    with exported_message_key(), run_broker(tmp_path) as broker_url, run_arrival_target() as target:
        scrapes: list[dict[str, float]] = []
        with (
            run_coordinator(broker_url, tmp_path / "data") as api,
            run_worker(broker_url, log=tmp_path / "worker.log"),
        ):
            runs = [api.submit(url=target.url, requests=200, rate="400/s") for _ in range(2)]
            deadline = time.monotonic() + 60
            while not scrapes or scrapes[-1]['oku_runs{state="completed"}'] < len(runs):
                assert time.monotonic() < deadline, scrapes[-1]
                scrapes.append(scrape(api))
                time.sleep(0.2)
            summaries = [api.summary(run) for run in runs]
        with run_coordinator(broker_url, tmp_path / "data") as api:
            scrapes.append(scrape(api))
    expected = {name: value for summary in summaries for name, value in list_run_series(summary).items()} | {
        'oku_runs{state="completed"}': 2,
        "oku_queue_oldest_seconds": 0,
    }
    for last in scrapes[-2:]:
        assert {name: last.get(name) for name in expected} == expected
    assert 0 < summaries[0]["queued_s"] < summaries[1]["queued_s"]
    assert max(each["oku_queue_oldest_seconds"] for each in scrapes) > 0
    counters = {name for each in scrapes for name in each if name.startswith("oku_target_requests_total")}
    for name in counters:
        values = [each[name] for each in scrapes if name in each]
        assert values == sorted(values), name
