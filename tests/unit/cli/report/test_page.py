import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import msgspec
import pytest
import yaml
from tests.kit.runs.compared import MakeRun
from tests.kit.runs.summaries import make_outcomes
from tests.unit.cli.report.conftest import START, Page, make_event, make_sample

from oku_cli.report.history_reader import RunHistory
from oku_cli.report.page import build_page
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.run_state import RunState
from oku_core.spec.parser import Source, parse_spec
from oku_core.summary.summary import Summary, WorkerSummary
from oku_core.summary.validity import Validity

MakeHistory = Callable[..., RunHistory]
MakeSummary = Callable[..., Summary]
NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def read_numbers(markup: str) -> dict[str, Any]:
    """Return the numbers that the script of a page can read out."""
    match = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', markup)
    assert match
    numbers: dict[str, Any] = json.loads(match[1])
    return numbers


def test_a_run_with_a_rate_has_more_to_show(make_open_history: MakeHistory) -> None:
    """Its phases, and three distributions; all charts over time tell the phases."""
    markup = build_page(make_open_history())
    page = Page(markup)
    assert page.faults == []
    assert [section["id"] for section in page.find("section")] == [
        "account", "over-time", "phases", "latencies", "outcomes", "workers", "coverage", "events", "spec",
    ]  # fmt: skip
    assert [figure["id"] for figure in page.find("figure")] == [
        "rate", "quantiles", "due", "heatmap", "load", "percentiles", "histogram", "leases",
    ]  # fmt: skip
    assert markup.count('class="phases"') == 6
    assert "Without the warm-up." in page.text
    # The time axis begins with the clock.
    heads = read_numbers(build_page(make_open_history()))["tracks"]["time"]["heads"]
    assert len(heads) == 10
    waited = make_open_history(samples=[make_sample(0, []), *make_open_history().samples])
    assert read_numbers(build_page(waited))["tracks"]["time"]["heads"] == heads


def test_a_page_loads_nothing(make_history: MakeHistory) -> None:
    """It contains no address that a browser would fetch, and its policy forbids any."""
    markup = build_page(make_history())
    page = Page(markup)
    assert not [name for name, _ in page.elements if name in ("link", "img", "iframe", "object", "base")]
    assert not [attributes for _, attributes in page.elements if "src" in attributes or "href" in attributes]
    assert "url(" not in markup
    assert "@import" not in markup
    (policy,) = [meta["content"] for meta in page.find("meta") if "http-equiv" in meta]
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_untrusted_text_stays_text(make_history: MakeHistory, make_summary: MakeSummary) -> None:
    """No name, URL, reason, flag, worker or event becomes markup."""
    summary = make_summary(
        name=NASTY, reason=NASTY, statuses={NASTY: 1000},
        workers=[WorkerSummary(name=NASTY, requests=1, cpu_s=1.0, peak_rss_mb=1.0, lost=True)],
        validity=[Validity(flag="resent", detail=NASTY, requests=1)],  # type: ignore[arg-type]
    )  # fmt: skip
    events = [make_event(5, text=NASTY)]
    markup = build_page(make_history(summary, events=events, spec={"url": [NASTY], "header": [NASTY]}))
    page = Page(markup)
    assert page.faults == []
    assert len(page.find("script")) == 2
    assert page.find("img") == []
    assert page.text.count(NASTY) >= 6


@pytest.mark.parametrize("state", RunState)
def test_a_run_has_a_page_in_every_state(
    make_history: MakeHistory, make_summary: MakeSummary, state: RunState
) -> None:
    """This holds even before it has begun."""
    nothing = make_summary(
        Histogram(), state=state, accounted=0, started_at=None, ended_at=None, active_s=0.0,
        throughput_rps=0.0, outcomes=make_outcomes(), statuses={}, servers=None,
        workers=[],
    )  # fmt: skip
    history = make_history(
        nothing, samples=[], events=[], leases=[], slices=[Slice(0, 1000, SliceState.PENDING)]
    )
    page = Page(build_page(history))
    assert page.faults == []
    assert f"soak {state}" in page.text


def test_a_run_of_almost_nothing_has_a_page(make_history: MakeHistory, make_summary: MakeSummary) -> None:
    """Everything else is shown, the chart of leases included."""
    page = Page(build_page(make_history(samples=[], events=[])))
    assert page.faults == []
    assert "There are no samples of this run" in page.text
    assert "No events were recorded." in page.text
    assert [figure["id"] for figure in page.find("figure")] == ["histogram", "percentiles", "leases"]
    # A run whose time was over at once has a page.
    summary = make_summary(
        Histogram(),
        requests=0,
        accounted=0,
        outcomes=make_outcomes(),
        statuses={},
    )
    unused = [Slice(0, 10**15, SliceState.UNUSED)]
    history = make_history(summary, samples=[make_sample(1, [])], slices=unused)
    page = Page(build_page(history))
    assert page.faults == []
    assert "0 of 0 requests accounted" in page.text
    # A run of one request has a page. Such a run has one second and one latency.
    histogram = Histogram()
    histogram.record(0)
    summary = make_summary(histogram, requests=1, accounted=1, outcomes=make_outcomes(ok=1))
    history = make_history(summary, samples=[make_sample(1, [0])], leases=[])
    assert Page(build_page(history)).faults == []


def test_the_spec_can_be_run_again(make_history: MakeHistory) -> None:
    """The page says which values are masked and have to be put back first."""
    spec = {"requests": 5, "url": ["http://h/{i}"], "header": ["Authorization: top"], "timeout": 2.5}
    markup = build_page(make_history(spec=spec))
    text = Page(markup).text
    assert "top" not in text.partition("Spec")[2]
    assert "Each *** hides" in text
    written = re.search(r"<code>(.*?)</code>", markup, re.DOTALL)
    assert written
    assert parse_spec(Source("spec", yaml.safe_load(unescape(written[1])))).timeout_s == 2.5
    assert "Each ***" not in Page(build_page(make_history())).text
    open_text = Page(build_page(make_history(spec=spec), show_secrets=True)).text
    assert "Authorization: top" in open_text
    assert "Each ***" not in open_text


def test_an_hour_makes_a_page_of_modest_size(make_history: MakeHistory) -> None:
    """Its size is bounded, whatever happened during the run."""
    kinds = [
        make_sample(1, [1000 * (1 + n * place % 97) for n in range(50)], outcomes=[45 + place, *[1] * 9])
        for place in range(20)
    ]
    samples = [
        msgspec.structs.replace(kinds[second * second % 20], at=START + second) for second in range(1, 3601)
    ]
    assert len(build_page(make_history(samples=samples))) < 600_000


def test_a_page_has_every_section(make_history: MakeHistory) -> None:
    """The account comes first."""
    page = Page(build_page(make_history()))
    assert page.faults == []
    assert [section["id"] for section in page.find("section")] == [
        "account", "over-time", "latencies", "outcomes", "workers", "coverage", "events", "spec",
    ]  # fmt: skip
    assert [figure["id"] for figure in page.find("figure")] == [
        "rate", "quantiles", "heatmap", "load", "histogram", "percentiles", "leases",
    ]  # fmt: skip
    # Ids are unique. Labels refer to elements by their ids.
    ids = [
        attributes["id"] for _, attributes in Page(build_page(make_history())).elements if "id" in attributes
    ]
    assert len(ids) == len(set(ids))
    # Numbers can be read out. Each series has one number for each position of its track.
    numbers = read_numbers(build_page(make_history()))
    plots = [div for div in Page(build_page(make_history())).find("div") if "data-chart" in div]
    assert {plot["data-chart"] for plot in plots} == set(numbers["series"])
    for plot in plots:
        track = numbers["tracks"][plot["data-track"]]
        for series in numbers["series"][plot["data-chart"]]:
            assert len(series["values"]) == len(track["x"]) == len(track["heads"])
    # Charts over time are aligned.
    markup = build_page(make_history())
    layouts = re.findall(r'<figure id="(\w+)">.*?<div class="(chart[^"]*)">', markup, flags=re.DOTALL)
    over_time = {name: layout for name, layout in layouts if name not in ("histogram", "percentiles")}
    assert over_time == dict.fromkeys(("rate", "quantiles", "heatmap", "load", "leases"), "chart has-ends")


def test_a_long_run_has_intervals_in_a_note(make_history: MakeHistory, make_run: MakeRun) -> None:
    """They are made when the page is."""
    run = make_run()
    page = Page(build_page(make_history(run.summary, samples=run.samples)))
    assert page.text.count("95 % intervals of the latency: p50 ") == 1
    assert "95 % intervals" not in Page(build_page(make_history())).text
