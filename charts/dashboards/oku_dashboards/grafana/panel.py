"""A panel of a dashboard as Grafana's classic JSON: what it shows, how exact that is, what it asks Loki.

The kinds of panels are in `visualizations`. Field names are Grafana's; `./task dashboards:check` checks
them against its own types.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from oku_dashboards.grafana.colours import FAINT, PLAIN

Json = dict[str, Any]

DATASOURCE: Mapping[str, str] = {"type": "loki", "uid": "${datasource}"}
TICK = "1s"
"""The shortest step of lines that come once a second."""
_HALF = 12
"""Half of the 24 columns of a dashboard."""
_OVER_TIME = frozenset({"timeseries", "heatmap", "logs"})
"""The kinds of panels that ask for series or lines; all others ask for one figure of the time range."""


class Exactness(StrEnum):
    """How far the figures of a panel can be trusted: the last sentence of its description."""

    EXACT = "Exact within the time range: made from what the ledger accounted for."
    RECORDED = "Exact: made from what the ledger recorded when it happened."
    LEDGER = "From the ledger, as of the latest tick in the time range."
    SERIES = "Exact once the run is at rest: until then some counts of its seconds are still to come."
    PROGRESS = "Not exact: made from the workers' progress, which may be lost."


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel.

    Attributes:
        kind: Grafana's name for it.
        title: a few words.
        shows: what it shows, in sentences.
        exactness: how far its figures can be trusted.
        queries: LogQL by the names of the series, with labels in double braces.
        unit: of its values, by Grafana's name.
        width: in columns of 24.
        height: in rows.
        min_step: the shortest step of its queries.
        most_lines: of queries for lines.
        no_value: the text shown when there is no value.
        decimals: of values; None lets Grafana choose.
        defaults: further settings of all fields.
        overrides: settings of single fields, made by `override`.
        options: of this kind of panel.
        transformations: of the data frames.
    """

    kind: str
    title: str
    shows: str
    exactness: Exactness
    queries: Mapping[str, str]
    unit: str = "short"
    width: int = _HALF
    height: int = 8
    min_step: str = TICK
    most_lines: int | None = None
    no_value: str = "no data in the time range"
    decimals: int | None = None
    defaults: Json = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    options: Json = field(default_factory=dict)
    transformations: Sequence[Json] = ()

    def to_json(self, id_: int, x: int, y: int) -> Json:
        """The panel as JSON at its position."""
        return {
            "id": id_,
            "type": self.kind,
            "title": self.title,
            "description": f"{self.shows}\n\n{self.exactness}",
            "datasource": dict(DATASOURCE),
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "interval": self.min_step,
            "targets": list(self._build_targets()),
            "fieldConfig": {
                "defaults": {
                    "unit": self.unit,
                    "noValue": self.no_value,
                    **({} if self.decimals is None else {"decimals": self.decimals}),
                    "color": {"mode": "fixed", "fixedColor": PLAIN},
                    "thresholds": build_threshold_steps({}),
                    **self.defaults,
                    "mappings": [*self.defaults.get("mappings", ()), _build_nothing(self.no_value)],
                },
                "overrides": [*self._name_values(), *self._build_overrides()],
            },
            "options": self.options,
            **({"transformations": list(self.transformations)} if self.transformations else {}),
        }

    def colour(self, colours: Mapping[str, str]) -> "Panel":
        """The panel with a fixed colour for each of these series."""
        return self.add(override(name, colour=colour) for name, colour in colours.items())

    def add(self, overrides: Iterable[Json]) -> "Panel":
        """The panel with further settings of single fields."""
        return replace(self, overrides=[*self.overrides, *overrides])

    def wide(self, width: int) -> "Panel":
        """The panel in another width."""
        return replace(self, width=width)

    def _build_targets(self) -> Iterable[Json]:
        for (name, expr), ref in zip(self.queries.items(), REFS, strict=False):
            yield {
                "refId": ref,
                "datasource": dict(DATASOURCE),
                "editorMode": "code",
                "expr": expr,
                "queryType": "range" if self.kind in _OVER_TIME else "instant",
                **({"legendFormat": name} if name and self.kind in _OVER_TIME else {}),
                **({"maxLines": self.most_lines} if self.most_lines else {}),
            }

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
        """Grafana makes a table of an instant query, and names its column of values after the query."""
        if self.kind in _OVER_TIME:
            return {}
        return {name: f"Value #{ref}" for name, ref in zip(self.queries, REFS, strict=False) if name}


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


def build_threshold_steps(steps: Mapping[float, str], base: str = PLAIN) -> Json:
    """Colours from these values on."""
    return {
        "mode": "absolute",
        "steps": [
            {"color": base, "value": None},
            *({"color": colour, "value": value} for value, colour in steps.items()),
        ],
    }


def by_threshold(steps: Mapping[float, str], base: str) -> Json:
    """Settings of fields whose colour depends on the value."""
    return {"color": {"mode": "thresholds"}, "thresholds": build_threshold_steps(steps, base)}


REFS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The ids of the queries of a panel."""


def _build_nothing(text: str) -> Json:
    """What a missing figure shows: the text in grey, for it is neither good nor bad."""
    return {"type": "special", "options": {"match": "null+nan", "result": {"text": text, "color": FAINT}}}
