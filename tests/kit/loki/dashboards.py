"""Asks a Loki what Grafana would ask it for the committed dashboards: panels, variables and annotations.

`list_queries` gives every query that the JSON holds; `Grafana` fills in the variables as Grafana's Loki data
source does, sends each query to the endpoint that it goes to, and gives back frames.
"""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "charts" / "oku" / "dashboards"
DASHBOARD_PX = 1560
"""How wide the 24 columns of a dashboard are on a usual screen: a panel asks for a point for each pixel."""
_FIELDS_OF_RATES = (
    "requests_planned", "planned_rps", "plan.", "response_time", "lateness", "clock_bound", "by (phase)",
    'kind="phase"', "by (target)", 'kind="target"', "verdict",
)  # fmt: skip
_OF_FAILURES = ('kind="failure"', "target_gone", "target_back")
_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_NICE_STEPS_S = (
    (1.5, 1), (3.5, 2), (7.5, 5), (12.5, 10), (17.5, 15), (25, 20), (45, 30), (90, 60), (210, 120),
    (450, 300), (750, 600), (1050, 900), (1500, 1200), (2700, 1800), (5400, 3600), (9000, 7200),
    (16200, 10800), (32400, 21600), (86400, 43200), (604800, 86400),
)  # fmt: skip
"""How Grafana rounds a step: below the first number it takes the second (`rangeUtil.roundInterval`)."""


class Source(StrEnum):
    """What part of a dashboard asks, and so how."""

    COURSE = "course"
    """A panel, for values over time."""
    FIGURE = "figure"
    """A panel, for values now."""
    LOGS = "logs"
    """A panel, for lines."""
    ANNOTATION = "annotation"
    """The marks in panels over time."""
    VARIABLE = "variable"
    """The choice of a variable."""


@dataclass(frozen=True, kw_only=True)
class DashboardQuery:
    """One query of a dashboard.

    Attributes:
        dashboard: its uid.
        title: of the panel, the annotation or the variable.
        ref: its letter in the panel.
        source: what asks.
        expr: LogQL with variables; of a variable the selector.
        name: of what comes, with labels in double braces; of a variable the label whose values are wanted.
        panel: the panel's JSON.
        most_lines: of queries for lines.
    """

    dashboard: str
    title: str
    source: Source
    expr: str
    ref: str = "A"
    name: str = ""
    panel: Mapping[str, Any] = field(default_factory=dict)
    most_lines: int = 1000

    @property
    def is_lasting(self) -> bool:
        """Whether it has something to show of every run that is over."""
        rarely = self.is_rare or self.is_of_now or self.is_for_rates or self.is_of_failures
        return not (rarely or self.is_of_user_code)

    @property
    def is_of_now(self) -> bool:
        """Whether it tells the last seconds of the time range: nothing once the run is at rest."""
        title: str = self.panel.get("title", "")
        return title.endswith(" now") and "[30s]" in self.expr

    @property
    def is_rare(self) -> bool:
        """Whether it shows what most runs do not have: lines that Loki did not get, and what is unused."""
        is_of_lines = self.source is Source.ANNOTATION and "lines_dropped" in self.expr
        return is_of_lines or "unwrap unused" in self.expr

    @property
    def is_of_failures(self) -> bool:
        """Whether it shows what only runs have whose requests failed."""
        return any(part in self.expr for part in _OF_FAILURES)

    @property
    def is_of_user_code(self) -> bool:
        """Whether it shows what only runs of user code have: the requests of iterations."""
        return 'kind="inner' in self.expr

    @property
    def is_for_rates(self) -> bool:
        """Whether it shows what only runs with a rate, phases, targets or thresholds have."""
        return self.source in {Source.COURSE, Source.FIGURE} and any(
            field in self.expr for field in _FIELDS_OF_RATES
        )

    def __str__(self) -> str:
        """Where it stands."""
        match self.source:
            case Source.ANNOTATION:
                return f"{self.dashboard}: annotation {self.title}"
            case Source.VARIABLE:
                return f"{self.dashboard}: ${self.title}"
            case _:
                return f"{self.dashboard}: {self.title}: {self.ref}"


@dataclass(frozen=True)
class Frame:
    """A series, a row of a table, a stream of lines, or the values of a variable.

    Attributes:
        name: as Grafana shows it.
        labels: of the series.
        times_s: Unix times of the values.
        values: as many numbers, or texts.
    """

    name: str
    labels: Mapping[str, str]
    times_s: Sequence[float]
    values: Sequence[Any]


def load_dashboards() -> dict[str, dict[str, Any]]:
    """The committed dashboards by uid."""
    documents = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    return {document["uid"]: document for document in documents}


def list_queries() -> list[DashboardQuery]:
    """Every query of every committed dashboard."""
    return [query for document in load_dashboards().values() for query in _list_of(document)]


class Grafana:
    """A dashboard as somebody looks at it.

    Args:
        loki_url: where Loki listens.
        start_s: Unix time at which the time range begins.
        end_s: at which it ends.
        variables: chosen values by name, such as `run`; else what a dashboard comes with.
    """

    def __init__(self, loki_url: str, start_s: float, end_s: float, variables: Mapping[str, str]) -> None:
        self._url = loki_url.rstrip("/")
        self.start_s = start_s
        self.end_s = end_s
        self._variables = variables

    def fetch(self, query: DashboardQuery) -> list[Frame]:
        """What Loki answers."""
        match query.source:
            case Source.VARIABLE:
                return [self._fetch_values(query)]
            case Source.LOGS | Source.ANNOTATION:
                return self._fetch_lines(query)
            case Source.FIGURE:
                return self._fetch_figures(query)
            case Source.COURSE:
                return self._fetch_courses(query)

    def fill(self, query: DashboardQuery) -> str:
        """The query with all variables filled in."""
        step_s, span_s = self.compute_step_s(query.panel), self.end_s - self.start_s
        span = str(round(span_s))
        # In the order of Grafana: the longer names first.
        text = query.expr.replace("$__interval_ms", str(round(step_s * 1000)))
        text = text.replace("$__interval", format_step(step_s))
        text = text.replace("$__range_ms", str(round(span_s * 1000))).replace("$__range_s", span)
        text = text.replace("$__range", f"{span}s")
        chosen = {**self._defaults[query.dashboard], **self._variables}
        return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], text)

    def compute_step_s(self, panel: Mapping[str, Any]) -> float:
        """How long a step of this panel is: `$__interval`."""
        width: float = panel.get("gridPos", {}).get("w", 24) / 24 * DASHBOARD_PX
        raw_s = (self.end_s - self.start_s) / panel.get("maxDataPoints", width)
        nice_s = next(step_s for below_s, step_s in _NICE_STEPS_S if raw_s < below_s)
        return max(parse_step_s(panel.get("interval", "1s")), nice_s)

    @cached_property
    def _defaults(self) -> dict[str, dict[str, str]]:
        return {uid: dict(_list_defaults(document)) for uid, document in load_dashboards().items()}

    def _fetch_values(self, query: DashboardQuery) -> Frame:
        document = self._get(
            f"/loki/api/v1/label/{query.name}/values", query=self.fill(query), **self._build_range()
        )
        values = document.get("data", [])
        return Frame(query.name, {}, [], values)

    def _fetch_lines(self, query: DashboardQuery) -> list[Frame]:
        document = self._get(
            "/loki/api/v1/query_range", query=self.fill(query), direction="backward",
            limit=query.most_lines, **self._build_range(),
        )  # fmt: skip
        frames = []
        for stream in document["data"]["result"]:
            times = [int(at) / 1e9 for at, *_ in stream["values"]]
            frames.append(
                Frame(query.name, stream["stream"], times, [line for _, line, *_ in stream["values"]])
            )
        return frames

    def _fetch_figures(self, query: DashboardQuery) -> list[Frame]:
        document = self._get("/loki/api/v1/query", query=self.fill(query), time=round(self.end_s * 1e9))
        return [
            Frame(
                _name(query, found["metric"]),
                found["metric"],
                [found["value"][0]],
                [float(found["value"][1])],
            )
            for found in document["data"]["result"]
        ]

    def _fetch_courses(self, query: DashboardQuery) -> list[Frame]:
        step_s = self.compute_step_s(query.panel)
        document = self._get(
            "/loki/api/v1/query_range", query=self.fill(query), direction="backward",
            step=f"{round(step_s * 1000)}ms", **self._build_range(),
        )  # fmt: skip
        return [
            Frame(
                _name(query, found["metric"]),
                found["metric"],
                [at for at, _ in found["values"]],
                [float(value) for _, value in found["values"]],
            )
            for found in document["data"]["result"]
        ]

    def _build_range(self) -> dict[str, int]:
        return {"start": round(self.start_s * 1e9), "end": round(self.end_s * 1e9)}

    def _get(self, path: str, **params: object) -> Any:
        url = f"{self._url}{path}?{urllib.parse.urlencode(params)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise AssertionError(f"{error.code} {said.strip()}: {params['query']}") from error


def parse_step_s(text: str) -> float:
    """`5s` in seconds."""
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
    assert found is not None, text
    return int(found[1]) * _UNITS_S[found[2]]


def format_step(step_s: float) -> str:
    """Seconds as Grafana writes them: in the largest unit of which there is one at least."""
    unit = next(name for name in reversed(_UNITS_S) if step_s >= _UNITS_S[name])
    return f"{int(step_s / _UNITS_S[unit])}{unit}"


def _list_of(document: Mapping[str, Any]) -> Iterator[DashboardQuery]:
    uid: str = document["uid"]
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            wanted = variable["query"]
            yield DashboardQuery(
                dashboard=uid,
                title=variable["name"],
                source=Source.VARIABLE,
                expr=wanted["stream"],
                name=wanted["label"],
            )
    for annotation in document["annotations"]["list"]:
        yield DashboardQuery(
            dashboard=uid,
            title=annotation["name"],
            source=Source.ANNOTATION,
            expr=annotation["expr"],
            name=annotation["textFormat"],
            most_lines=annotation["maxLines"],
        )
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            if panel["type"] == "logs":
                source = Source.LOGS
            else:
                source = Source.FIGURE if target["queryType"] == "instant" else Source.COURSE
            yield DashboardQuery(
                dashboard=uid,
                title=panel["title"],
                source=source,
                expr=target["expr"],
                ref=target["refId"],
                name=target.get("legendFormat", ""),
                panel=panel,
                most_lines=target.get("maxLines", 1000),
            )


def _list_defaults(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for variable in document["templating"]["list"]:
        value = variable["current"].get("value", "")
        yield variable["name"], variable.get("allValue", "") if value == "$__all" else value


def _name(query: DashboardQuery, labels: Mapping[str, str]) -> str:
    name = re.sub(r"{{\s*(\w+)\s*}}", lambda found: labels.get(found[1], ""), query.name)
    return name or ", ".join(labels.values())
