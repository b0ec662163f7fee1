"""The links that commands print lead to the dashboard of a run, as a real Loki has it."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.loki.dashboards import Grafana, list_queries
from tests.kit.loki.loki import Loki
from tests.kit.runs.local_run import OKU, Start, run_oku

GRAFANA = "https://grafana.example/below"
QUERIES = {str(query): query for query in list_queries()}


@pytest.fixture(scope="module")
def loki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loki]:
    """One for all tests of the module."""
    with Loki(tmp_path_factory.mktemp("loki")) as started:
        yield started


@dataclass(frozen=True)
class Link:
    """What a link of a command says."""

    text: str

    @property
    def dashboard(self) -> str:
        """The uid of the dashboard."""
        return urlsplit(self.text).path.removeprefix("/below/d/")

    def get(self, name: str) -> str:
        """The one value of a parameter."""
        [value] = parse_qs(urlsplit(self.text).query)[name]
        return value

    def open(self, loki: Loki) -> Grafana:
        """A Grafana that was opened by it."""
        until = time.time() if self.get("to") == "now" else int(self.get("to")) / 1000
        return Grafana(loki.url, int(self.get("from")) / 1000, until, {"run": self.get("var-run")})


def find_links(output: str) -> list[Link]:
    """The links in what a command has printed."""
    return [Link(text) for text in re.findall(rf"{GRAFANA}/\S+", output)]


def assert_shows(link: Link, loki: Loki, summary: dict[str, object]) -> None:
    """Everything that the run accounted for is seen by the link."""
    grafana = link.open(loki)
    assert link.dashboard == "oku-run"
    for where in ("Sums over ranges: B", "Account: B"):
        [frame] = grafana.fetch(QUERIES[f"oku-run: {where}"])
        assert list(frame.values) == [summary["accounted"]], where
    [frame] = grafana.fetch(QUERIES["oku-run: State: A"])
    assert frame.labels == {"state": summary["state"]}
    [choice] = grafana.fetch(QUERIES["oku-run: $run"])
    assert summary["run"] in choice.values


def test_a_run_is_seen_by_its_links_while_it_goes_on_and_later(
    start: Start, loki: Loki, tmp_path: Path
) -> None:
    """The first link goes on with the run, the last one has its time; `oku show` gives the same."""
    run = start(
        "run", "--requests", "3000", "--delay", "10ms", "--loki", loki.url, "--grafana", f"{GRAFANA}/"
    )
    summary = run.finish()
    live, last = find_links(run.output)
    assert live.get("to") == "now"
    assert_shows(live, loki, summary)
    assert_shows(last, loki, summary)
    length_s = (int(last.get("to")) - int(last.get("from"))) / 1000
    assert summary["active_s"] < length_s < summary["active_s"] + 60
    where = ("--data-dir", str(run.data_dir), "--grafana", GRAFANA)
    shown = run_oku("show", "latest", *where, cwd=tmp_path)
    assert find_links(shown.stdout) == [last]
    as_json = run_oku("show", "latest", "--json", *where, cwd=tmp_path)
    assert json.loads(as_json.stdout)["run"] == summary["run"]
    assert find_links(as_json.stderr) == [last]


def test_standard_output_of_scripts_holds_no_link(loki: Loki, tmp_path: Path) -> None:
    """With --json links go to standard error; with --quiet there are none."""
    command = [*OKU, "run", "--requests", "100", "--loki", loki.url, "--grafana", GRAFANA]
    ended = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["accounted"] == 100
    assert len(find_links(ended.stderr)) == 2
    quiet = subprocess.run([*command, "--quiet"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert GRAFANA not in quiet.stdout + quiet.stderr


def test_a_remote_run_is_seen_in_the_loki_of_its_coordinator(loki: Loki, tmp_path: Path) -> None:
    """The command needs to know the Grafana alone."""
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", "--loki", loki.url) as api,
    ):
        run = api.submit(requests=10)
        api.call("POST", f"/api/runs/{run}/cancel")
        where = ("--coordinator", api.url, "--token", TOKEN, "--grafana", GRAFANA)
        shown = run_oku("show", run, *where, cwd=tmp_path)
        [link] = find_links(shown.stdout)
        assert (link.get("var-run"), link.dashboard) == (run, "oku-run")
        assert link.get("to") != "now"


def test_a_run_without_loki_has_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag is refused; the variable is for those runs that have one."""
    refused = run_oku("run", "-n", "10", "--grafana", GRAFANA, cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (
        2,
        "oku: --grafana: shows what is in a Loki; name that by --loki\n",
    )
    secret = run_oku("run", "-n", "10", "--grafana", "http://me:pass@host", cwd=tmp_path)
    assert (secret.returncode, secret.stderr.count("\n")) == (2, 1)
    assert "pass" not in secret.stderr
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("OKU_GRAFANA_URL", GRAFANA)
    ended = run_oku("run", "-n", "10", cwd=tmp_path)
    assert ended.returncode == 0
    assert GRAFANA not in ended.stdout + ended.stderr
