"""Intervals and comparisons of real runs, from a data folder and from a coordinator."""

import json
from contextlib import closing
from pathlib import Path

import msgspec
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.coordinators.transactions import change
from tests.kit.runs.local_run import Start, run_oku
from tests.kit.runs.seconds import draw_seconds

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import keep_second
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.spec.spec import Spec


def test_a_run_of_half_a_minute_has_intervals(start: Start, tmp_path: Path) -> None:
    """In its summary and in its report; compared with itself, it is not judged."""
    run = start("run", "--duration", "32s", "-c", "2", "-w", "1", "--servers", "1", "--delay", "10ms..20ms")
    summary = run.finish()
    shown = run_oku("show", "latest", "--json", "--data-dir", str(run.data_dir), cwd=tmp_path)
    for each in (summary, json.loads(shown.stdout)):
        low, high = each["latency_interval_ms"]["p50"]
        assert low < each["latency_ms"]["p50"] < high
    page = (run.data_dir / "reports" / f"{summary['run']}.html").read_text()
    assert "95 % intervals of the latency: p50 " in page
    where = ("--data-dir", str(run.data_dir), "--html", "c.html")
    compared = run_oku("compare", "latest", summary["run"], *where, cwd=tmp_path)
    assert compared.returncode == 0
    assert "A and B are the same run" in compared.stdout
    assert "A and B are the same run" in (tmp_path / "c.html").read_text()


def test_runs_of_a_remote_coordinator_are_compared(tmp_path: Path) -> None:
    """Those that are not at rest are shown, and not judged."""
    (tmp_path / "data").mkdir()
    with closing(Ledger(tmp_path / "data" / "ledger.sqlite3")) as ledger:
        for seed, run in enumerate(("r1", "r2")):
            change(ledger, create_run, run, Spec(requests=5 + seed, workers=1), 1.0)
            for sample in draw_seconds(40, seed=seed)[0]:
                none = [0] * len(sample.outcomes)
                change(ledger, keep_second, run, msgspec.structs.replace(sample, outcomes=none))
    with run_broker(tmp_path) as broker_url, run_coordinator(broker_url, tmp_path / "data") as api:
        where = ("--coordinator", api.url, "--token", TOKEN)
        compared = run_oku("compare", "r1", "r2", "--json", *where, cwd=tmp_path)
    assert compared.returncode == 0, compared.stderr
    document = json.loads(compared.stdout)
    assert document["differences"] == [{"key": "requests", "a": 5, "b": 6}]
    assert "A has no answers" in document["reasons"]
