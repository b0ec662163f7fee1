"""The report of real runs: what `oku run` leaves, and what `oku report` makes of it."""

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.runs.local_run import Start, run_oku

from oku_core.accounting import hdr
from oku_core.accounting.outcome import OUTCOMES

FLAGS = (
    "--delay",
    "20ms",
    "--workers",
    "2",
    "--concurrency",
    "20",
    "--name",
    "a <b> run",
)


def test_a_run_leaves_a_report(start: Start, tmp_path: Path) -> None:
    """It lies in the data folder, and the command says where; exports have the figures of the summary."""
    run = start("run", "--requests", "6000", *FLAGS)
    summary = run.finish()
    page = run.data_dir / "reports" / f"{summary['run']}.html"
    assert f"report      {page}" in run.output
    assert "6,000" in page.read_text()
    assert "a &lt;b&gt; run" in page.read_text()

    made = run_oku(
        "report", summary["run"], "--data-dir", str(run.data_dir), "-o", "r.html", "--json",
        "--csv", "r.csv", "--hgrm", "r.hgrm", cwd=tmp_path,
    )  # fmt: skip

    assert (made.returncode, len(made.stderr.splitlines())) == (0, 3)
    assert (tmp_path / "r.html").read_text().count("<figure") == page.read_text().count("<figure") >= 7
    document: dict[str, Any] = json.loads(made.stdout)
    assert document["summary"] == summary
    assert document["slices"] == [[0, 6000, "accounted"]]
    leased = [range(lease["start"], lease["stop"]) for lease in document["leases"]]
    assert set().union(*leased) == set(range(6000))  # one that was taken back is leased again
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    assert len(rows) == len(document["samples"]) >= 2
    assert 0 < sum(int(row["requests_ended"]) for row in rows) <= 6000
    assert all(int(row["requests_ended"]) == sum(int(row[name]) for name in OUTCOMES) for row in rows)
    latency = hdr.decode(base64.b64decode(summary["histogram"]))
    assert f"Total count    = {latency.total:12d}]" in (tmp_path / "r.hgrm").read_text()


def test_a_report_that_cannot_be_written_does_not_spoil_the_run(start: Start, tmp_path: Path) -> None:
    """One line says so, and the exit code is that of the run."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "reports").write_text("no folder")
    run = start("run", "--requests", "500", *FLAGS, "--quiet")
    run.finish()
    assert run.process.returncode == 0
    assert "oku: the report could not be written: " in run.output


def test_a_quiet_run_names_its_report_below_the_summary(start: Start) -> None:
    """So a job that shows no progress still says where the report is."""
    run = start("run", "--requests", "500", *FLAGS, "--quiet")
    summary = run.finish()
    assert (run.data_dir / "reports" / f"{summary['run']}.html").exists()
    assert run.output.rstrip().endswith(f"reports/{summary['run']}.html")


def test_a_report_can_be_made_from_a_remote_coordinator(tmp_path: Path) -> None:
    """The page and the exports are made locally; an unknown run is answered in one line."""
    with run_broker(tmp_path) as broker_url, run_coordinator(broker_url, tmp_path / "data") as api:
        run = api.submit(requests=100, name="remote")
        where = ("--coordinator", api.url, "--token", TOKEN)
        made = run_oku("report", run, *where, cwd=tmp_path)
        exported = run_oku("report", run, "--json", *where, cwd=tmp_path)
        unknown = run_oku("report", "nope", *where, cwd=tmp_path)
    assert (made.returncode, made.stderr.split()[:2]) == (0, ["wrote", f"oku-report-{run}.html"])
    assert "remote" in (tmp_path / f"oku-report-{run}.html").read_text()
    assert json.loads(exported.stdout)["spec"]["requests"] == 100
    assert (unknown.returncode, unknown.stderr) == (2, f"oku: {api.url}: there is no run nope\n")
