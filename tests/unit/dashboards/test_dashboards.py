"""The dashboards keep the rules of Grafana, of LogQL and of those who look at them."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.summary.summary import Summary
from oku_core.thresholds.threshold_summary import ThresholdVerdict
from oku_dashboards.dashboards import build_files
from oku_dashboards.grafana.colours import OUTCOME_COLOURS, STATE_COLOURS, VERDICT_COLOURS
from oku_dashboards.grafana.panel import Exactness

DASHBOARDS: dict[str, dict[str, Any]] = {path.stem: json.loads(text) for path, text in build_files().items()}
UIDS = ("oku-run", "oku-workers", "oku-coverage", "oku-compare")
LASTING = {
    *("range", "status", "summary", "phase", "target", "threshold", "failure", "event"),
    *("inner", "inner_range"),
}
LEDGER_FIELDS = {
    *("accounted", "leased", "pending", "requests_total", "resent_at_most", "active_s"),
    *("clock_s", "length_s", "unused"),
    *("part", "start", "stop", "again"),
    *("target", "load"),
}
"""What ticks and coverage have from the ledger."""
SERIES_FIELDS = {
    *("requests_ended", "requests_sent", "requests_planned", "seconds", "active_s", "since"),
    *OUTCOMES,
}
"""What ticks have from checkpoints, and what these counts are divided and placed by."""
MIN_STEPS_S = {
    "tick": 1,
    "latency": 1,
    "worker": 5,
    "coverage": 10,
    "range": 1,
    "status": 10,
    "phase": 1,
    "target": 1,
    "threshold": 1,
    "failure": 1,
    "inner": 1,
    "inner_range": 10,
}


LINES_OF_LISTS = {
    "statuses": "status",
    "phases": "phase",
    "targets": "target",
    "thresholds": "threshold",
    "failures": "failure",
    "inner_requests": "inner",
}
"""The kinds of lines that have what is in lists of the summary."""


def list_panels(uid: str) -> list[dict[str, Any]]:
    """All panels but headings."""
    return [panel for panel in DASHBOARDS[uid]["panels"] if panel["type"] != "row"]


def list_targets() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each query, with where it stands and its panel."""
    for uid in UIDS:
        for panel in list_panels(uid):
            for target in panel["targets"]:
                yield f"{uid}: {panel['title']}: {target['refId']}", panel, target


Panel = dict[str, Any]


def for_each_panel(*kinds: str) -> Callable[[Callable[[Panel], None]], Callable[[], None]]:
    """Make a test that checks all panels, or those of some kinds, and reports each that fails."""
    panels = {f"{uid}: {panel['title']}": panel for uid in UIDS for panel in list_panels(uid)}
    chosen = {name: (panel,) for name, panel in panels.items() if not kinds or panel["type"] in kinds}
    return lambda check: _build_test(check, chosen)


def for_each_query(check: Callable[[Panel, Panel], None]) -> Callable[[], None]:
    """Make a test that checks all queries, each with its panel, and reports each that fails."""
    return _build_test(check, {where: (panel, target) for where, panel, target in list_targets()})


def _build_test(check: Callable[..., None], cases: Mapping[str, tuple[Panel, ...]]) -> Callable[[], None]:
    def test() -> None:
        assert cases
        faults = []
        for name, arguments in cases.items():
            try:
                check(*arguments)
            except AssertionError as error:
                faults.append(f"{name}: {error}")
        assert not faults, "\n".join(faults)

    test.__doc__ = check.__doc__
    return test


def find_kinds(expr: str) -> set[str]:
    """The kinds of lines that a query reads."""
    return {kind for found in re.findall(r'kind=~?"([^"]+)"', expr) for kind in found.split("|")}


def find_fields(expr: str) -> set[str]:
    """The fields that a query takes from lines."""
    return set(re.findall(r'="([\w.]+)"', " ".join(re.findall(r"\| json ([^|]+)", expr))))


def test_there_are_four_dashboards() -> None:
    """They have fixed ids, which links rely on."""
    assert set(DASHBOARDS) == set(UIDS)
    for uid in UIDS:
        assert DASHBOARDS[uid]["uid"] == uid
        assert DASHBOARDS[uid]["tags"] == ["oku"]
        assert DASHBOARDS[uid]["title"].startswith("Oku / ")
        assert "id" not in DASHBOARDS[uid], "an id is of one Grafana only"


def test_committed_files_are_those_that_the_code_builds() -> None:
    """Nobody edits them by hand."""
    assert all(path.read_text() == text for path, text in build_files().items())


@pytest.mark.parametrize("uid", UIDS)
def test_a_dashboard_opens_on_the_last_minutes_and_goes_on(uid: str) -> None:
    """A run of a minute is seen without setting anything; two runs, if they were in one hour."""
    document = DASHBOARDS[uid]
    assert document["time"] == {"from": "now-1h" if uid == "oku-compare" else "now-15m", "to": "now"}
    assert document["refresh"] == "5s"
    assert 36 <= document["schemaVersion"] <= 39


@pytest.mark.parametrize("uid", UIDS)
def test_a_dashboard_leads_to_the_others_with_its_run_and_time(uid: str) -> None:
    """The other three are one click away."""
    links = DASHBOARDS[uid]["links"]
    assert {link["url"].split("?")[0] for link in links} == {f"/d/{other}" for other in UIDS if other != uid}
    assert all(link["keepTime"] and link["includeVars"] for link in links)
    if uid == "oku-compare":
        assert all(link["url"].endswith("?var-run=${run_a}") for link in links)
    else:
        compare = next(link["url"] for link in links if "oku-compare" in link["url"])
        assert compare == "/d/oku-compare?var-run_a=${run}"


@pytest.mark.parametrize("uid", UIDS)
def test_variables_choose_a_loki_a_name_and_a_run(uid: str) -> None:
    """Runs are listed newest first for each time range; all names include runs without one."""
    variables = {variable["name"]: variable for variable in DASHBOARDS[uid]["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "loki")
    assert variables["name"]["allValue"] == ".*"
    assert variables["name"]["includeAll"]
    for name in ("run_a", "run_b") if uid == "oku-compare" else ("run",):
        run = variables[name]
        assert (run["refresh"], run["sort"], run["includeAll"], run["multi"]) == (2, 2, False, False)
        assert run["query"]["label"] == "run"
        assert 'name=~"$name"' in run["query"]["stream"]
        assert run["datasource"] == {"type": "loki", "uid": "${datasource}"}
    assert not any("current" in run and run["current"] for name, run in variables.items() if "run" in name)


@pytest.mark.parametrize("uid", UIDS)
def test_events_are_marked_in_panels(uid: str) -> None:
    """Events of a run are marked in every panel over time, except in Compare."""
    if not any(panel["type"] in {"timeseries", "heatmap"} for panel in DASHBOARDS[uid]["panels"]):
        assert uid == "oku-compare"
        assert DASHBOARDS[uid]["annotations"]["list"] == []
        return
    marks = DASHBOARDS[uid]["annotations"]["list"]
    types = {type_ for mark in marks for type_ in re.findall(r'type=~"([^"]+)"', mark["expr"])[0].split("|")}
    assert {"worker_lost", "lease_expired", "state", "coordinator_started"} <= types
    assert all(find_kinds(mark["expr"]) == {"event"} for mark in marks)


@pytest.mark.parametrize("uid", UIDS)
def test_ids_are_unique(uid: str) -> None:
    """Grafana tells panels apart by their ids."""
    ids = [panel["id"] for panel in DASHBOARDS[uid]["panels"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("uid", UIDS)
def test_titles_are_unique(uid: str) -> None:
    """Each title names one panel of a dashboard."""
    titles = [panel["title"] for panel in list_panels(uid)]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("uid", UIDS)
def test_panels_do_not_overlap(uid: str) -> None:
    """Each has its own place in the 24 columns."""
    places = [panel["gridPos"] for panel in DASHBOARDS[uid]["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart_x or apart_y, (one, other)


@for_each_panel()
def test_a_panel_says_what_it_shows_and_how_exact_that_is(panel: Panel) -> None:
    """The last sentence of its description is about exactness."""
    shows, exactness = panel["description"].split("\n\n")
    assert panel["title"]
    assert shows.endswith(".")
    assert exactness in set(Exactness)


@for_each_panel()
def test_exactness_is_that_of_the_lines(panel: Panel) -> None:
    """Panels made from lasting lines are exact; ticks and coverage have some fields from the ledger."""
    exactness = Exactness(panel["description"].split("\n\n")[1])
    kinds = set().union(*(find_kinds(target["expr"]) for target in panel["targets"]))
    fields = set().union(*(find_fields(target["expr"]) for target in panel["targets"]))
    match exactness:
        case Exactness.EXACT:
            assert kinds <= LASTING - {"event"}
        case Exactness.RECORDED:
            assert "event" in kinds
            assert kinds == {"event"} or fields == {"state"}
        case Exactness.LEDGER:
            assert kinds <= {"tick", "coverage"}
            assert fields <= LEDGER_FIELDS
        case Exactness.SERIES:
            assert kinds == {"tick"}
            assert fields <= SERIES_FIELDS
        case Exactness.PROGRESS:
            assert not kinds <= LASTING


@for_each_panel()
def test_a_panel_without_data_says_why(panel: Panel) -> None:
    """Every panel has a text for that case."""
    assert panel["fieldConfig"]["defaults"]["noValue"]


@for_each_panel()
def test_values_have_a_unit(panel: Panel) -> None:
    """Plain counts have a unit as well."""
    assert panel["fieldConfig"]["defaults"]["unit"]


@for_each_query
def test_a_step_is_at_least_what_lines_come_in(panel: Panel, target: Panel) -> None:
    """A shorter step would have holes, a longer range would count lines twice."""
    found = re.fullmatch(r"(\d+)s", panel["interval"])
    assert found is not None
    if target["queryType"] == "range" and panel["type"] != "logs":
        assert int(found[1]) >= max(MIN_STEPS_S[kind] for kind in find_kinds(target["expr"]))


@for_each_query
def test_the_range_of_a_query_is_its_step_or_the_whole_time(panel: Panel, target: Panel) -> None:
    """Panels over time use the step, single figures the whole range or its end, lists of lines none."""
    ranges = set(re.findall(r"\[([^\]]+)\]", target["expr"]))
    if panel["type"] == "logs":
        assert ranges == set()
        assert target["maxLines"] <= 5000
    elif panel["title"].endswith(" now"):
        assert (ranges, target["queryType"]) == ({"30s"}, "instant")
    else:
        assert ranges == {"$__range" if target["queryType"] == "instant" else "$__interval"}


@for_each_query
def test_series_are_aggregated(panel: Panel, target: Panel) -> None:
    """Late lines have one label more, and Loki adds some: they must not be series of their own."""
    if panel["type"] == "logs":
        return
    inner = len(re.findall(r"_over_time\(", target["expr"]))
    assert inner
    grouped = r"(?:sum|max|min|avg)(?: by \([\w, ]+\))? ?\((?:sum|max|min|avg|count|last)_over_time\("
    assert len(re.findall(grouped, target["expr"])) == inner


@for_each_query
def test_quantiles_are_only_compared(panel: Panel, target: Panel) -> None:
    """They are neither summed nor averaged, and no quantile is taken of anything."""
    del panel
    assert "quantile" not in target["expr"]
    for fold, field in re.findall(r"(\w+)_over_time\([^\[]*unwrap (\w+) \[", target["expr"]):
        if re.fullmatch(r"(\w+_)?(p\d+(_9)?|mean|min|max)(_ms)?", field):
            assert fold in {"max", "min", "last"}, field


@for_each_query
def test_counts_of_ticks_are_added(panel: Panel, target: Panel) -> None:
    """A second may have several lines, as some counts come later: nothing else is right for them."""
    del panel
    for fold, selector, field in re.findall(
        r"(\w+)_over_time\(({[^}]*})[^\[]*unwrap (\w+) \[", target["expr"]
    ):
        if "tick" in find_kinds(selector) and field in SERIES_FIELDS - {"active_s"}:
            assert fold == "sum", field


@for_each_query
def test_only_fields_that_are_used_are_taken_from_lines(panel: Panel, target: Panel) -> None:
    """Taking fields out of lines is most of what a query costs."""
    del panel
    for taken, rest in re.findall(r"\| json ([^|]+)(.*?)(?=\{app=|$)", target["expr"]):
        names = re.findall(r"(\w+)=\"", taken)
        by = " ".join(re.findall(r"by \(([\w, ]+)\)", target["expr"]))
        assert names
        for name in names:
            assert re.search(rf"\b{name}\b", rest + by), name
    assert not re.search(r"\| json *(\||$)", target["expr"])


@for_each_query
def test_queries_by_worker_are_bounded(panel: Panel, target: Panel) -> None:
    """Loki gives at most 500 series, and there may be thousands of workers."""
    if panel["type"] == "logs" or "by (worker)" not in target["expr"]:
        return
    assert re.match(r"(topk|bottomk)\((\$top|100), ", target["expr"])
    assert 'worker=~"$worker"' in target["expr"]


@for_each_query
def test_queries_by_target_are_of_the_chosen_ones(panel: Panel, target: Panel) -> None:
    """A run has a hundred targets at most, fewer than Loki's series: nothing else bounds them."""
    if "by (target)" not in target["expr"]:
        return
    assert panel["fieldConfig"]["defaults"]["noValue"] == "this run names no targets"
    assert target["expr"].count('target=~"$target"') == len(re.findall(r"_over_time\(", target["expr"]))


@for_each_panel()
def test_heatmaps_take_rows_as_they_come(panel: Panel) -> None:
    """Buckets are counted by the coordinator; Grafana must not calculate them again."""
    if panel["type"] != "heatmap":
        return
    assert panel["options"]["calculate"] is False
    layout = panel["options"]["rowsFrame"]["layout"]
    assert layout == ("le" if "latency" in find_kinds(panel["targets"][0]["expr"]) else "unknown")


def test_an_outcome_has_one_colour() -> None:
    """An outcome has the same colour in every panel of every dashboard."""
    colours = defaultdict(set)
    for uid in UIDS:
        for panel in list_panels(uid):
            overrides = panel["fieldConfig"]["overrides"]
            names = {
                override["matcher"]["options"]: setting["value"]
                for override in overrides
                for setting in override["properties"]
                if setting["id"] == "displayName"
            }
            for override in overrides:
                name = names.get(override["matcher"]["options"], override["matcher"]["options"])
                for setting in override["properties"]:
                    if setting["id"] == "color" and name in set(OUTCOMES):
                        colours[name].add(setting["value"]["fixedColor"])
    assert colours == {outcome: {OUTCOME_COLOURS[outcome]} for outcome in OUTCOMES}
    assert len(set(OUTCOME_COLOURS.values())) == len(OUTCOMES)


def test_overrides_are_for_fields_that_there_are() -> None:
    """For an instant query they name the column, for other queries the series."""
    for where, panel, _ in list_targets():
        names = {
            f"Value #{target['refId']}" for target in panel["targets"] if target["queryType"] == "instant"
        }
        names |= {target["legendFormat"] for target in panel["targets"] if "legendFormat" in target}
        labels = set(
            re.findall(r"\w+", " ".join(re.findall(r"by \(([\w, ]+)\)", panel["targets"][0]["expr"])))
        )
        for override in panel["fieldConfig"]["overrides"]:
            if override["matcher"]["id"] == "byName":
                assert override["matcher"]["options"] in names | labels, where


def test_every_state_has_a_colour() -> None:
    """A new state needs a colour, too."""
    assert set(STATE_COLOURS) == set(RunState)


def test_a_verdict_has_the_colour_of_what_it_means() -> None:
    """Every verdict has one, and a run without a verdict shows nothing good or bad."""
    assert VERDICT_COLOURS == {"passed": "green", "failed": "red", "undecided": "orange"}
    assert set(VERDICT_COLOURS) == set(ThresholdVerdict)
    [verdict] = [panel for panel in list_panels("oku-run") if panel["title"] == "Verdict"]
    mapping = verdict["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert {word: mapped["color"] for word, mapped in mapping.items()} == VERDICT_COLOURS


@for_each_panel("stat")
def test_a_figure_is_told_whole_and_in_its_size(panel: Panel) -> None:
    """Counts are not rounded to 9K, nor times to 2 mins, and no message fills the panel."""
    defaults, overrides = panel["fieldConfig"]["defaults"], panel["fieldConfig"]["overrides"]
    units = {defaults["unit"]} | {
        property_["value"]
        for override in overrides
        for property_ in override["properties"]
        if property_["id"] == "unit"
    }
    assert not units & {"reqps", "m", "h"}
    assert "s" not in units or defaults["unit"] == "s"
    assert panel["options"]["graphMode"] == "none"
    assert panel["options"]["text"]["valueSize"] <= 30


@for_each_panel("stat", "gauge")
def test_what_is_not_there_is_said_in_grey(panel: Panel) -> None:
    """A missing value is neither good nor bad."""
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["mappings"][-1]["options"] == {
        "match": "null+nan",
        "result": {"text": defaults["noValue"], "color": "#8e8e99"},
    }


@for_each_panel("timeseries")
def test_a_legend_shows_all_of_its_lines(panel: Panel) -> None:
    """There is room for two entries below a panel."""
    has_many = any("{{" in target.get("legendFormat", "") for target in panel["targets"])
    if len(panel["targets"]) > 2 or has_many:
        assert panel["options"]["legend"]["placement"] == "right"


def test_two_runs_share_their_axes() -> None:
    """They are compared on the time since their start, in one panel, whenever they were."""
    charts = [panel for panel in DASHBOARDS["oku-compare"]["panels"] if panel["type"] == "barchart"]
    assert len(charts) >= 6
    for chart in charts:
        assert chart["options"]["xField"] == "since"
        for target in chart["targets"]:
            assert {"$run_a", "$run_b"} <= set(re.findall(r"\$run_[ab]", target["expr"]))


def test_figures_of_the_summary_are_shown_or_the_page_on_figures_says_why_not() -> None:
    """None that is new is forgotten, and none that is shown is said to be left out."""
    shown = {word for _, _, target in list_targets() for word in re.findall(r"\w+", target["expr"])}
    missing = {
        field
        for field in Summary.__struct_fields__
        if LINES_OF_LISTS.get(field, field) not in shown
        and not (field == "outcomes" and {outcome.value for outcome in OUTCOMES} <= shown)
    }
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    [excepted] = re.findall(r"^The dashboards show all of it except these fields: (.*)$", page, re.MULTILINE)
    assert missing == set(re.findall(r"`(\w+)`", excepted)) - {"underfilled"}
