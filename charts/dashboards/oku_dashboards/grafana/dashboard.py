"""A dashboard as Grafana's classic JSON: its panels in their places, its variables, links and annotations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oku_core.results.event import EventType
from oku_dashboards.grafana.colours import BAD, CAUTION, GOOD, PLAIN
from oku_dashboards.grafana.logql import Lines
from oku_dashboards.grafana.panel import DATASOURCE, Json, Panel

SCHEMA_VERSION = 38
"""The newest that Grafana 10.0 knows. Each later Grafana migrates it as it loads it; what it migrates (39 of
10.2: a transformation; 40 to 42 of 11 and 12: `refresh`, the time picker, tooltips) is not used here. A newer
one would be taken by an older Grafana without a word, and not be understood."""

_COLUMNS = 24
_TITLES = {"oku-run": "Run", "oku-workers": "Workers", "oku-coverage": "Coverage", "oku-compare": "Compare"}


class DashboardRow:
    """A heading and the panels below it, which wrap like words in a text."""

    def __init__(self, title: str, *panels: Panel) -> None:
        self.title = title
        self.panels = panels


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A dashboard.

    Attributes:
        uid: fixed, so that links keep working.
        description: one or two sentences.
        variables: `build_run_variable` and the like.
        rows: of panels; the first has no heading.
        annotations: `build_annotations`.
        run: its variable for the run, which links pass on.
        shows_last: the time range that it opens with, until now; a run of a minute fills a part of it that
            is seen.
    """

    uid: str
    description: str
    variables: Sequence[Json]
    rows: Sequence[DashboardRow]
    annotations: Sequence[Json] = ()
    run: str = "run"
    shows_last: str = "15m"

    def to_json(self) -> Json:
        """The document."""
        return {
            "uid": self.uid,
            "title": f"Oku / {_TITLES[self.uid]}",
            "description": self.description,
            "tags": ["oku"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "timezone": "browser",
            "time": {"from": f"now-{self.shows_last}", "to": "now"},
            "timepicker": {"refresh_intervals": ["5s", "10s", "30s", "1m", "5m"]},
            "refresh": "5s",
            "fiscalYearStartMonth": 0,
            "links": [self._build_link(uid) for uid in _TITLES if uid != self.uid],
            "templating": {"list": [_build_datasource_variable(), *self.variables]},
            "annotations": {"list": list(self.annotations)},
            "panels": self._place(),
        }

    def _build_link(self, uid: str) -> Json:
        handed = "run_a" if uid == "oku-compare" else "run"
        same = handed == self.run
        return {
            "title": _TITLES[uid],
            "type": "link",
            "url": f"/d/{uid}" if same else f"/d/{uid}?var-{handed}=${{{self.run}}}",
            "includeVars": True,
            "keepTime": True,
            "targetBlank": False,
            "asDropdown": False,
            "icon": "dashboard",
            "tags": [],
            "tooltip": f"The same run and time range in Oku / {_TITLES[uid]}",
        }

    def _place(self) -> list[Json]:
        placed: list[Json] = []
        y = 0
        for row in self.rows:
            if row.title:
                heading = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
                placed.append(
                    {
                        "id": len(placed) + 1,
                        "type": "row",
                        "title": row.title,
                        "collapsed": False,
                        "gridPos": heading,
                        "panels": [],
                    }
                )
                y += 1
            x = height = 0
            for panel in row.panels:
                if x + panel.width > _COLUMNS:
                    x, y, height = 0, y + height, 0
                placed.append(panel.to_json(len(placed) + 1, x, y))
                x, height = x + panel.width, max(height, panel.height)
            y += height
        return placed


def build_name_variable() -> Json:
    """The variable that selects runs by name; all runs include those without a name."""
    return _build_label_variable(
        "name",
        "Name",
        "Runs with this name. All: runs with any name or none.",
        '{app="oku"}',
        sort=1,
        includeAll=True,
        allValue=".*",
        current={"selected": True, "text": "All", "value": "$__all"},
    )


def build_run_variable(name: str = "run", label: str = "Run", other_than: str = "") -> Json:
    """The variable that selects a run.

    Args:
        name: of the variable.
        label: its title.
        other_than: a variable whose run is left out.
    """
    but = f', run!="${other_than}"' if other_than else ""
    return _build_label_variable(
        name,
        label,
        "Runs in the time range, newest first. If yours is missing, choose a longer range.",
        f'{{app="oku", name=~"$name"{but}}}',
        of="run",
    )


def build_text_variable(name: str, label: str, default: str, description: str) -> Json:
    """A variable that the user types."""
    chosen = {"selected": True, "text": default, "value": default}
    return _build_variable(
        "textbox", name, label, description=description, query=default, current=chosen, options=[chosen]
    )


def build_choice_variable(name: str, label: str, choices: Sequence[str], description: str) -> Json:
    """A variable with a few choices; the first is the default."""
    options = [{"selected": not place, "text": text, "value": text} for place, text in enumerate(choices)]
    return _build_variable(
        "custom",
        name,
        label,
        description=description,
        query=",".join(choices),
        current=options[0],
        options=options,
        multi=False,
        includeAll=False,
    )


def build_annotations(events: Lines) -> list[Json]:
    """The events of the run as marks in every panel over time; `events` are lines of kind `event`."""
    marks = (
        ("Target gone", BAD, (EventType.TARGET_GONE,)),
        ("Target back", GOOD, (EventType.TARGET_BACK,)),
        ("Workers lost", BAD, (EventType.WORKER_LOST,)),
        ("Leases taken back", CAUTION, (EventType.LEASE_EXPIRED,)),
        ("State changes", PLAIN, (EventType.STATE,)),
        ("Coordinator started", "purple", (EventType.COORDINATOR_STARTED,)),
        ("Lines dropped or refused", "yellow", (EventType.LINES_DROPPED, EventType.LINES_REFUSED)),
    )
    return [
        {
            "name": name,
            "datasource": dict(DATASOURCE),
            "enable": True,
            "hide": False,
            "iconColor": colour,
            # The Loki data source reads these here, not in a target.
            "expr": f'{events.pick("type", "text")} | type=~"{"|".join(types)}"',
            "titleFormat": name,
            "textFormat": "{{text}}",
            "tagKeys": "type",
            "maxLines": 200,
        }
        for name, colour, types in marks
    ]


def _build_datasource_variable() -> Json:
    return _build_variable(
        "datasource", "datasource", "Loki", query="loki", refresh=1, regex="", multi=False, includeAll=False
    )


def _build_label_variable(
    name: str, label: str, description: str, stream: str, of: str = "", **settings: Any
) -> Json:
    """A variable with the values that a label has in the time range, as Loki lists them."""
    query = {
        "refId": "LokiVariableQueryEditor-VariableQuery",
        "type": 1,
        "label": of or name,
        "stream": stream,
    }
    usual: Json = {"sort": 2, "includeAll": False}
    return _build_variable(
        "query",
        name,
        label,
        description=description,
        datasource=dict(DATASOURCE),
        definition="",
        query=query,
        refresh=2,
        regex="",
        multi=False,
        **usual | settings,
    )


def _build_variable(kind: str, name: str, label: str, **settings: Any) -> Json:
    usual: Json = {"current": {}, "options": [], "hide": 0, "skipUrlSync": False}
    return {"name": name, "label": label, "type": kind, **usual, **settings}
