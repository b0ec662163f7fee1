"""Panels of a dashboard, as classic JSON of Grafana: the few kinds that Oku uses, each with what it needs.

A panel says what it shows and how exact that is. How the fields are called is Grafana's matter;
`./task dashboards:check` holds them against its own types.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from oku_dashboards.palette import PLAIN

Json = dict[str, Any]

DATASOURCE: Mapping[str, str] = {"type": "loki", "uid": "${datasource}"}
TICK = "1s"
"""The shortest step of what is told once a second."""
HALF = 12
"""Of the 24 columns of a dashboard."""


class Exactness(StrEnum):
    """How far the figures of a panel can be trusted; the last sentence of its description."""

    EXACT = "Exact, as far as the time range reaches: made of what the ledger accounted for."
    RECORDED = "Exact: made of what the ledger recorded when it happened."
    LEDGER = "Of the ledger, as of the latest tick in the time range."
    PROGRESS = "Not exact: made of progress, which may be lost."


@dataclass(frozen=True)
class Query:
    """One query of a panel.

    Attributes:
        expr: LogQL.
        name: how what comes is called, with labels in double braces.
        is_instant: whether one figure is wanted, not a course of time.
        most_lines: of a query for lines.
    """

    expr: str
    name: str = ""
    is_instant: bool = False
    most_lines: int | None = None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel.

    Attributes:
        kind: Grafana's name of it.
        title: a few words.
        shows: what it shows, in sentences.
        exactness: how far to trust it.
        queries: what it asks Loki.
        unit: of its values, as Grafana calls it.
        width: in columns of 24.
        height: in rows.
        min_step: the shortest step of its queries.
        most_points: how many steps at most, about; else as many as there are pixels.
        no_value: what stands there when there is nothing.
        decimals: of values; None lets Grafana choose.
        defaults: further settings of all fields.
        overrides: settings of single fields, `override` makes them.
        options: of this kind of panel.
        transformations: of the frames.
    """

    kind: str
    title: str
    shows: str
    exactness: Exactness
    queries: Sequence[Query]
    unit: str = "short"
    width: int = HALF
    height: int = 8
    min_step: str = TICK
    most_points: int | None = None
    no_value: str = "no data in the time range"
    decimals: int | None = None
    defaults: Json = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    options: Json = field(default_factory=dict)
    transformations: Sequence[Json] = ()

    def to_json(self, id_: int, x: int, y: int) -> Json:
        """The panel at its place."""
        return {
            "id": id_,
            "type": self.kind,
            "title": self.title,
            "description": f"{self.shows}\n\n{self.exactness}",
            "datasource": dict(DATASOURCE),
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "interval": self.min_step,
            **({"maxDataPoints": self.most_points} if self.most_points else {}),
            "targets": [_build_target(query, ref) for query, ref in zip(self.queries, _REFS, strict=False)],
            "fieldConfig": {
                "defaults": {
                    "unit": self.unit,
                    "noValue": self.no_value,
                    **({} if self.decimals is None else {"decimals": self.decimals}),
                    "color": {"mode": "fixed", "fixedColor": PLAIN},
                    "thresholds": build_thresholds({}),
                    "mappings": [],
                    **self.defaults,
                },
                "overrides": [*self._name_values(), *self._build_overrides()],
            },
            "options": self.options,
            **({"transformations": list(self.transformations)} if self.transformations else {}),
        }

    def colour(self, colours: Mapping[str, str]) -> "Panel":
        """The same with a fixed colour for each name of a series."""
        overrides = [override(name, colour=colour) for name, colour in colours.items()]
        return replace(self, overrides=[*self.overrides, *overrides])

    def _name_values(self) -> Iterable[Json]:
        for name, column in self._columns.items():
            yield override(column, displayName=name)

    def _build_overrides(self) -> Iterable[Json]:
        # By the name of the column: Grafana may have looked at the one that is shown before it was given.
        for settings in self.overrides:
            matcher = settings["matcher"]
            column = self._columns.get(matcher["options"], matcher["options"])
            yield settings | {"matcher": matcher | {"options": column}}

    @property
    def _columns(self) -> dict[str, str]:
        """Of an instant query Grafana makes a table, and calls its column of values after the query."""
        return {
            query.name: f"Value #{ref}"
            for query, ref in zip(self.queries, _REFS, strict=False)
            if query.is_instant and query.name
        }


def override(name: str, *, colour: str | None = None, is_pattern: bool = False, **properties: Any) -> Json:
    """Settings of the field of this name (or that this regular expression matches)."""
    if colour is not None:
        properties["color"] = {"mode": "fixed", "fixedColor": colour}
    return {
        "matcher": {"id": "byRegexp" if is_pattern else "byName", "options": name},
        "properties": [
            {"id": id_.replace("custom_", "custom."), "value": value} for id_, value in properties.items()
        ],
    }


def build_thresholds(steps: Mapping[float, str], base: str = PLAIN) -> Json:
    """Colours from certain values on."""
    return {
        "mode": "absolute",
        "steps": [
            {"color": base, "value": None},
            *({"color": colour, "value": value} for value, colour in steps.items()),
        ],
    }


def by_threshold(steps: Mapping[float, str], base: str) -> Json:
    """Settings of fields whose colour says how good the value is."""
    return {"color": {"mode": "thresholds"}, "thresholds": build_thresholds(steps, base)}


def stat(*, fields: str = "", calculation: str = "lastNotNull", **settings: Any) -> Panel:
    """Figures; with queries over time also their courses, small.

    Args:
        fields: a regular expression of the fields that are shown; else all numbers.
        calculation: what is made of several values.
        settings: of the panel.
    """
    queries: Sequence[Query] = settings["queries"]
    options = {
        "reduceOptions": {"values": False, "calcs": [calculation], "fields": fields},
        "orientation": "auto",
        "textMode": "value_and_name" if len(queries) > 1 else "value",
        "colorMode": "value",
        "graphMode": "none" if queries[0].is_instant else "area",
        "justifyMode": "auto",
    }
    usual: Json = {"height": 4}
    return Panel(kind="stat", options=options | settings.pop("options", {}), **usual | settings)


def gauge(**settings: Any) -> Panel:
    """A share of 1."""
    options = {
        "reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""},
        "orientation": "auto",
        "showThresholdLabels": False,
        "showThresholdMarkers": False,
    }
    usual: Json = {"height": 4, "unit": "percentunit"}
    return Panel(kind="gauge", options=options, **usual | settings)


def bar_gauge(*, is_by_row: bool = False, **settings: Any) -> Panel:
    """A bar for each value; or for each row of the one table that comes, named by its text."""
    options = {
        "reduceOptions": {"values": is_by_row, "calcs": ["lastNotNull"], "fields": ""},
        "orientation": "horizontal",
        "displayMode": "gradient",
        "valueMode": "text",
        "showUnfilled": True,
        "minVizWidth": 8,
        "minVizHeight": 16,
    }
    defaults = {"min": 0} | settings.pop("defaults", {})
    return Panel(kind="bargauge", options=options, defaults=defaults, **settings)


def lines(*, custom: Json | None = None, table: Sequence[str] = ("mean", "max"), **settings: Any) -> Panel:
    """Lines over time.

    Args:
        custom: how they are drawn, beside what is usual; None takes something of that away.
        table: what the legend says of each.
        settings: of the panel.
    """
    drawn = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 10,
        "gradientMode": "none",
        "showPoints": "never",
        # A step may hold no tick: they are not in step with the second. A pause stays a gap.
        "spanNulls": 15000,
        "axisSoftMin": 0,
        "stacking": {"mode": "none", "group": "A"},
    }
    options = {
        "legend": {
            "displayMode": "table",
            "placement": "right" if len(settings["queries"]) > _MOST_BELOW else "bottom",
            "showLegend": True,
            "calcs": list(table),
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    drawn |= custom or {}
    defaults = {"custom": {name: value for name, value in drawn.items() if value is not None}} | settings.pop(
        "defaults", {}
    )
    return Panel(kind="timeseries", options=options, defaults=defaults, **settings)


STACKED: Json = {"fillOpacity": 60, "lineWidth": 0, "stacking": {"mode": "normal", "group": "A"}}
"""Areas on top of each other."""
BARS: Json = {
    "drawStyle": "bars",
    "fillOpacity": 80,
    "lineWidth": 0,
    "stacking": {"mode": "normal", "group": "A"},
}


@dataclass(frozen=True)
class HeatScale:
    """How a heatmap is coloured and read.

    Attributes:
        fill: a colour that is the more opaque the larger the value is; else a rainbow.
        layout: `le` when the name of a row is its upper bound, `unknown` when it is just its name.
        row_unit: unit of the names of rows.
        is_even: whether colours go evenly over values; else small ones are told apart better.
        largest: the value of the last colour; else the largest there is.
    """

    fill: str = ""
    layout: str = "le"
    row_unit: str = "ms"
    is_even: bool = False
    largest: float | None = None


def heatmap(scale: HeatScale, **settings: Any) -> Panel:
    """Rows over time, a query's series each, coloured by value."""
    largest = {} if scale.largest is None else {"min": 0, "max": scale.largest}
    unit: str = settings.get("unit", "short")
    options = {
        "calculate": False,
        "rowsFrame": {"layout": scale.layout, "value": settings.pop("value", "requests")},
        "cellGap": 0,
        "cellValues": {"unit": unit},
        "color": {
            "mode": "opacity" if scale.fill else "scheme",
            "scheme": "Turbo",
            "scale": "linear" if scale.is_even else "exponential",
            "exponent": 0.5,
            "fill": scale.fill or PLAIN,
            "reverse": False,
            "steps": 64,
            **largest,
        },
        "filterValues": {"le": 1e-9},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "legend": {"show": True},
        "showValue": "never",
        "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": True},
        "yAxis": {"axisPlacement": "left", "unit": scale.row_unit},
    }
    return Panel(kind="heatmap", options=options, **settings)


def logs(**settings: Any) -> Panel:
    """Lines as they are, the newest first."""
    options = {
        "showTime": True,
        "showLabels": False,
        "showCommonLabels": False,
        "wrapLogMessage": True,
        "prettifyLogMessage": False,
        "enableLogDetails": True,
        "dedupStrategy": "none",
        "sortOrder": "Descending",
    }
    return Panel(kind="logs", options=options, **settings)


def table(*, key: str, sort_by: str, **settings: Any) -> Panel:
    """A row for each value of a label, a column for each query, joined by that label.

    Args:
        key: the label.
        sort_by: the name of the column by which rows are sorted, the largest first.
        settings: of the panel.
    """
    queries: Sequence[Query] = settings["queries"]
    order = [key, *(f"Value #{ref}" for _, ref in zip(queries, _REFS, strict=False))]
    organize = {
        "excludeByName": {"Time": True},
        "indexByName": {name: place for place, name in enumerate(order)},
        "renameByName": {},
    }
    defaults = {"custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False}}
    options = {
        "showHeader": True,
        "cellHeight": "sm",
        "frameIndex": 0,
        "sortBy": [{"displayName": sort_by, "desc": True}],
    }
    return Panel(
        kind="table",
        options=options,
        defaults=defaults | settings.pop("defaults", {}),
        transformations=[{"id": "merge", "options": {}}, {"id": "organize", "options": organize}],
        **settings,
    )


def bar_chart(*, key: str, **settings: Any) -> Panel:
    """A bar for each value of a label, made of the queries' values on top of each other."""
    options = {
        "xField": key,
        "orientation": "vertical",
        "stacking": "normal",
        "showValue": "never",
        "groupWidth": 1,
        "barWidth": 1,
        "fullHighlight": False,
        "xTickLabelRotation": 0,
        "xTickLabelMaxLength": 3,
        "xTickLabelSpacing": 0,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    organize = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {}}
    return Panel(
        kind="barchart",
        options=options,
        defaults={"custom": {"fillOpacity": 80, "lineWidth": 0}},
        transformations=[{"id": "merge", "options": {}}, {"id": "organize", "options": organize}],
        **settings,
    )


_REFS = "ABCDEFGHIJKL"
_MOST_BELOW = 4
"""A legend with more entries stands beside its panel: below, it would take half of it."""


def _build_target(query: Query, ref: str) -> Json:
    return {
        "refId": ref,
        "datasource": dict(DATASOURCE),
        "editorMode": "code",
        "expr": query.expr,
        "queryType": "instant" if query.is_instant else "range",
        **({"legendFormat": query.name} if query.name and not query.is_instant else {}),
        **({"maxLines": query.most_lines} if query.most_lines else {}),
    }
