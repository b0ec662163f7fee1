"""The kinds of panels that Oku uses, each with the options that it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oku_dashboards.grafana.colours import PLAIN
from oku_dashboards.grafana.panel import REFS, Json, Panel, override

NOTHING = "-"
"""What a cell of a table shows that has no value; else it would show the text of the whole panel."""
_MOST_BELOW = 2
"""A legend with more entries stands beside its panel: below, some would be out of sight."""
_VALUE_SIZE, _TITLE_SIZE = 26, 14
"""Of figures and of their names, in pixels: as large as there is room, a message would fill its panel."""


def stat(*, fields: str = "", calculation: str = "lastNotNull", **settings: Any) -> Panel:
    """Figures.

    Args:
        fields: a regular expression of the fields that are shown; else all numbers.
        calculation: reduces several values to one.
        settings: of the panel.
    """
    options = {
        "reduceOptions": {"values": False, "calcs": [calculation], "fields": fields},
        "orientation": "auto",
        "textMode": "value_and_name" if len(settings["queries"]) > 1 else "value",
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "text": {"titleSize": _TITLE_SIZE, "valueSize": _VALUE_SIZE},
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
        "text": {"titleSize": _TITLE_SIZE, "valueSize": _VALUE_SIZE},
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
        "sizing": "manual",
        "minVizWidth": 8,
        "minVizHeight": 16,
        "maxVizHeight": 36,
    }
    defaults = {"min": 0} | settings.pop("defaults", {})
    return Panel(kind="bargauge", options=options, defaults=defaults, **settings)


def lines(
    *,
    custom: Json | None = None,
    table: Sequence[str] = ("mean", "max"),
    has_many: bool = False,
    **settings: Any,
) -> Panel:
    """Lines over time.

    Args:
        custom: overrides the usual drawing; None removes a setting.
        table: what the legend says of each.
        has_many: whether a query gives a line for each of several things.
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
            "placement": "right" if has_many or len(settings["queries"]) > _MOST_BELOW else "bottom",
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


LOGARITHMIC: Json = {"scaleDistribution": {"type": "log", "log": 10}, "fillOpacity": 0, "axisSoftMin": None}
"""Lines of values that lie decades apart."""
DASHES: Json = {"fill": "dash", "dash": [6, 6]}
PLAN: Json = {"custom_fillOpacity": 15, "custom_lineWidth": 4}
"""A broad line behind others, as settings of one field."""
PALETTE: Json = {"color": {"mode": "palette-classic"}}
"""By the order of the names: by the names themselves, Grafana gives those that are alike nearly the same."""
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


def table(
    *, key: str, sort_by: str, is_rising: bool = False, labels: Sequence[str] = (), **settings: Any
) -> Panel:
    """A row for each value of a label, a column for each query, joined by that label.

    Args:
        key: the label.
        labels: other labels by which the queries aggregate, as columns between the key and their values; one
            that a row does not have is a dash there.
        sort_by: the name of the column by which rows are sorted.
        is_rising: whether the smallest comes first; else the largest.
        settings: of the panel.
    """
    order = [key, *labels, *(f"Value #{ref}" for _, ref in zip(settings["queries"], REFS, strict=False))]
    organize = {
        "excludeByName": {"Time": True},
        "indexByName": {name: place for place, name in enumerate(order)},
        "renameByName": {},
    }
    defaults = {
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False, "minWidth": 90}
    }
    options = {
        "showHeader": True,
        "cellHeight": "sm",
        "frameIndex": 0,
        "sortBy": [{"displayName": sort_by, "desc": not is_rising}],
    }
    return Panel(
        kind="table",
        options=options,
        defaults=defaults | settings.pop("defaults", {}),
        overrides=[*(override(label, noValue=NOTHING) for label in labels), *settings.pop("overrides", ())],
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
        "xTickLabelMaxLength": 8,
        "xTickLabelSpacing": 0,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    organize = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {}}
    return Panel(
        kind="barchart",
        options=options,
        defaults={"custom": {"fillOpacity": 80, "lineWidth": 0}},
        transformations=[
            {"id": "merge", "options": {}},
            {"id": "organize", "options": organize},
            {"id": "sortBy", "options": {"sort": [{"field": key}]}},
        ],
        **settings,
    )
