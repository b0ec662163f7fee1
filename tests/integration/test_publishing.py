"""A run of the local stack with a real Loki: what is in the ledger is in Loki."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.loki.dashboards import Grafana, Source, list_queries
from tests.kit.loki.loki import Loki
from tests.kit.loki.loki_account import assert_events, assert_published, assert_ticks_agree, fetch, sum_up
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import Start

LOAD = ("--requests", "20000", "--workers", "2", "--concurrency", "100", "--delay", "5ms..20ms")
SCENARIO = """\
import asyncio

from oku import record


async def scenario(index):
    async with record("query"):
        await asyncio.sleep(0.005)
    if index % 10 == 0:
        async with record("rare"):
            pass
"""


@pytest.fixture(scope="module")
def loki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loki]:
    """One for all tests of the module: each run has streams of its own."""
    with Loki(tmp_path_factory.mktemp("loki")) as started:
        yield started


def test_what_is_in_the_ledger_is_in_loki(start: Start, loki: Loki) -> None:
    """Loki has its sums, statuses, events and summary, and the coverage ends with everything accounted."""
    run = start("run", *LOAD, "--name", "shop front", "--loki", loki.url)
    summary = run.finish()
    assert_completed(summary)
    assert_published(loki, summary)
    assert_ticks_agree(loki, summary)
    events = assert_events(loki, run.data_dir / "ledger.sqlite3", summary["run"])
    assert events["state"] == 3
    assert "lines wait" not in run.output
    coverage = fetch(loki, summary["run"], "coverage")[-50:]
    assert [line["part"] for line in coverage] == [f"{part:02d}" for part in range(50)]
    assert sum(line["accounted"] for line in coverage) == 20_000
    workers = {line["worker"] for line in fetch(loki, summary["run"], "worker")}
    assert workers == {"worker-1", "worker-2"}
    selector = f'{{run="{summary["run"]}", name="shop front", kind="summary"}}'
    assert loki.count_lines(selector) == 1


def test_lines_wait_for_an_unreachable_loki(start: Start, tmp_path: Path) -> None:
    """The run is as quick as ever, and the next one delivers; without a Loki nothing is kept."""
    unpublished = start("run", "--requests", "500").finish()
    assert_completed(unpublished)
    loki = Loki(tmp_path / "loki")
    began = time.monotonic()
    first = start("run", *LOAD, "--loki", loki.url)
    summary = first.finish()
    took_s = time.monotonic() - began
    assert_completed(summary)
    assert took_s < 30
    assert "lines wait in the ledger" in first.output
    with loki:
        second = start("run", "--requests", "100", "--loki", loki.url)
        assert_completed(second.finish())
        assert_published(loki, summary)
        assert sum_up(loki, unpublished["run"], "range", "requests") == {}


def test_a_run_that_is_paused_and_resumed_is_complete(start: Start, loki: Loki) -> None:
    """It has a summary for each time it came to rest, and the sums are those of both parts."""
    first = start("run", *LOAD, "--loki", loki.url)
    first.wait_for_accounted(2000)
    first.process.terminate()
    paused = first.finish()
    assert paused["state"] == "paused"
    second = start("resume", paused["run"], "--loki", loki.url)
    summary = second.finish()
    assert_published(loki, summary)
    assert_ticks_agree(loki, summary)
    assert [line["state"] for line in fetch(loki, summary["run"], "summary")] == ["paused", "completed"]


def test_a_run_with_a_rate_has_its_plan_its_phases_its_targets_and_what_was_not_sent(
    start: Start, loki: Loki, tmp_path: Path
) -> None:
    """Seconds sum to the plan and to what was sent, and no query of its dashboard is empty."""
    spec = tmp_path / "shop.yaml"
    spec.write_text("targets: [{name: item, weight: 3, url: '/item/{i}'}, {name: buy, url: /buy}]")
    run = start(
        "run", str(spec), "--stage", "ramp=3s:0..200/s", "--stage", "soak=4s:200/s", "--warm-up", "1s",
        "--late", "100ms", "--workers", "2", "--concurrency", "8", "--delay", "60ms..90ms",
        "--threshold", "ok of buy >= 1%", "--loki", loki.url,
    )  # fmt: skip
    summary = run.finish()
    assert_completed(summary)
    assert summary["outcomes"]["not_sent"] > 100
    assert [phase["name"] for phase in summary["phases"]] == ["warm-up", "ramp", "soak"]
    assert [(target["name"], target["requests"]) for target in summary["targets"]] == [
        ("item", 825),
        ("buy", 275),
    ]
    assert_published(loki, summary)
    assert_ticks_agree(loki, summary)
    ticks = fetch(loki, summary["run"], "tick")
    assert sum(tick.get("requests_planned", 0) for tick in ticks) == summary["requests"] == 1100
    assert sum(tick["requests_sent"] for tick in ticks) == 1100 - summary["outcomes"]["not_sent"]
    assert {tick["phase"] for tick in ticks} == {"warm-up", "ramp", "soak"}
    assert ticks[-1]["clock_s"] == ticks[-1]["length_s"] == 7.0
    now = time.time()
    grafana = Grafana(loki.url, now - 120, now, {"run": summary["run"], "run_a": summary["run"]})
    queries = [query for query in list_queries() if query.dashboard == "oku-run" and not query.is_rare]
    asked = [query for query in queries if not query.is_of_now and query.source is not Source.ANNOTATION]
    asked = [query for query in asked if not query.is_of_user_code]
    assert [str(query) for query in asked if not grafana.fetch(query)] == []


def test_a_run_of_user_code_says_what_its_requests_came_to(start: Start, loki: Loki, tmp_path: Path) -> None:
    """Each panel about them has data, and their figures are those of the summary."""
    scenario = tmp_path / "scenario.py"
    scenario.write_text(SCENARIO)
    run = start("run", str(scenario), "--iterations", "2000", "--concurrency", "20", "--loki", loki.url)
    summary = run.finish()
    assert_completed(summary)
    assert_published(loki, summary)
    assert {each["name"]: each["requests"] for each in summary["inner_requests"]} == {
        "query": 2000,
        "rare": 200,
    }
    now = time.time()
    grafana = Grafana(loki.url, now - 120, now, {"run": summary["run"], "run_a": summary["run"]})
    queries = [query for query in list_queries() if query.is_of_user_code]
    assert len(queries) > 5
    assert [str(query) for query in queries if not grafana.fetch(query)] == []
    [counted] = [query for query in queries if str(query) == "oku-run: Requests of iterations: A"]
    assert sorted(frame.values[-1] for frame in grafana.fetch(counted)) == [200, 2000]


def test_a_run_that_a_time_ends_says_what_is_unused(start: Start, loki: Loki) -> None:
    """Its dashboard shows how much of its time has passed, and of its number what it could not take."""
    run = start("run", *LOAD, "--requests", "1M", "--duration", "4s", "--loki", loki.url)
    summary = run.finish()
    assert_completed(summary)
    assert_published(loki, summary)
    assert_ticks_agree(loki, summary)
    last = fetch(loki, summary["run"], "tick")[-1]
    assert last["unused"] == 1_000_000 - summary["accounted"]
    assert "requests_planned" not in last


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--loki", "ftp://x"), "--loki: "),
        (("--loki", "127.0.0.1:3100"), "--loki: "),
        (("--loki", "http://x", "--loki-ca", "/no/such.pem"), "--loki-ca: /no/such.pem is not a file"),
        (("--loki", "http://x", "--loki-outbox", "1kB"), "--loki-outbox: 1kB is less than 1MB"),
        (("--loki", "http://x", "--loki-token", "t", "--loki-username", "u"), "--loki-token: cannot be"),
        (("--loki", "http://x", "--coordinator", "http://y", "--token", "t"), "--loki: is a setting of"),
    ],
)
def test_an_invalid_loki_url_is_refused_in_one_line(
    start: Start, flags: tuple[str, ...], message: str
) -> None:
    """The exit code is 2, and nothing is started."""
    run = start("run", "--requests", "10", *flags)
    assert run.process.wait(20) == 2
    assert run.output.startswith(f"oku: {message}")
    assert run.output.count("\n") == 1
    assert not (run.data_dir / "ledger.sqlite3").exists()
