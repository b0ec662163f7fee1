"""The kinds of panels that Oku uses, each with the options that it needs."""

from collections.abc import Sequence
from typing import Any

from oku_dashboards.grafana.colours import PLAIN
from oku_dashboards.grafana.panel import REFS, Json, Panel, override

NOTHING = "-"
"""What a cell of a table shows that has no value; else it would show the text of the whole panel."""
_MOST_BELOW = 2
"""A legend with more entries stands beside its panel: below, some would be out of sight."""
_TEXT: Json = {"titleSize": 14, "valueSize": 26}
"""Font sizes in pixels. If Grafana chose them, a message would fill its panel."""


def stat(*, fields: str = "", **settings: Any) -> Panel:
    """Figures.

    Args:
        fields: a regular expression of the fields that are shown; else all numbers.
        settings: of the panel.
    """
    options = {
        "reduceOptions": _reduce(fields=fields),
        "orientation": "auto",
        "textMode": "value_and_name" if len(settings["queries"]) > 1 else "value",
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "text": _TEXT,
    }
    usual: Json = {"height": 4}
    return Panel(kind="stat", options=options | settings.pop("options", {}), **usual | settings)


def gauge(**settings: Any) -> Panel:
    """A share of 1."""
    options = {
        "reduceOptions": _reduce(),
        "orientation": "auto",
        "showThresholdLabels": False,
        "showThresholdMarkers": False,
        "text": _TEXT,
    }
    usual: Json = {"height": 4, "unit": "percentunit"}
    return Panel(kind="gauge", options=options, **usual | settings)


def bar_gauge(*, is_by_row: bool = False, **settings: Any) -> Panel:
    """A bar for each value; or for each row of the one table that comes, named by its text."""
    options = {
        "reduceOptions": _reduce(values=is_by_row),
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


def _reduce(*, values: bool = False, fields: str = "") -> Json:
    return {"values": values, "calcs": ["lastNotNull"], "fields": fields}


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
        table: the figures of the legend.
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


def heatmap(
    *,
    fill: str = "",
    is_even: bool = False,
    largest: float | None = None,
    value: str = "requests",
    **settings: Any,
) -> Panel:
    """Rows over time, one for each series of the query, coloured by value.

    Args:
        fill: a colour, more opaque for larger values, for rows that are just names; else a rainbow, for
            buckets of latencies that are named by their upper bounds in milliseconds.
        is_even: whether colours are linear in values; else small values are easier to distinguish.
        largest: the value of the last colour; else the largest value there is.
        value: the name of the values.
        settings: of the panel.
    """
    bounds = {} if largest is None else {"min": 0, "max": largest}
    options = {
        "calculate": False,
        "rowsFrame": {"layout": "unknown" if fill else "le", "value": value},
        "cellGap": 0,
        "cellValues": {"unit": settings.get("unit", "short")},
        "color": {
            "mode": "opacity" if fill else "scheme",
            "scheme": "Turbo",
            "scale": "linear" if is_even else "exponential",
            "exponent": 0.5,
            "fill": fill or PLAIN,
            "reverse": False,
            "steps": 64,
            **bounds,
        },
        "filterValues": {"le": 1e-9},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "legend": {"show": True},
        "showValue": "never",
        "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": True},
        "yAxis": {"axisPlacement": "left", "unit": "none" if fill else "ms"},
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
