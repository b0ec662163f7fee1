"""Makes docs/images/dashboard-run.png: panels of the dashboards of a run, from their own JSON and queries.

What stands in charts/oku/dashboards is asked of a Loki as Grafana would ask it (tests/kit/dashboards.py) and
drawn with matplotlib (`drawing`): a picture of the dashboards' data, not of Grafana. `./task docs:panels`.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
from docs.tools import drawing
from docs.tools.drawing import Mark, Place
from matplotlib.figure import Figure
from tests.kit.dashboards import DashboardQuery, Frame, Grafana, Source, list_queries, load_dashboards

_IMAGE = Path(__file__).parents[1] / "images" / "dashboard-run.png"
_LOOK_BACK_S = 7 * 86400
_LAST_ROW = "Events"
"""Of the dashboard of a run all rows before this one are drawn."""
_COVERAGE_PANELS = ("Accounted", "Again")
_COLUMN_PX, _ROW_PX, _GAP_PX = 65, 30, 8
"""Grafana's own measures of a dashboard 1560 pixels wide."""
_HEAD_PX = 74


class Picture:
    """A figure into which panels are put at their places in the grid."""

    def __init__(self, grafana: Grafana, rows: int, title: str, caption: str) -> None:
        self._grafana = grafana
        self._height_px = _HEAD_PX + rows * (_ROW_PX + _GAP_PX) + _GAP_PX
        self._width_px = 24 * _COLUMN_PX + 2 * _GAP_PX
        size = (self._width_px / 100, self._height_px / 100)
        self.figure = Figure(figsize=size, dpi=100, facecolor=drawing.GROUND)
        self._say(26, title, size=15, color=drawing.TEXT, weight="bold")
        self._say(52, caption, size=9, color=drawing.FAINT)

    def add_heading(self, panel: dict[str, Any], y: int) -> None:
        """The heading of a row."""
        self._say(_HEAD_PX + y * (_ROW_PX + _GAP_PX) + 20, panel["title"], size=11, color=drawing.TEXT)

    def add(self, dashboard: str, panel: dict[str, Any], y: int) -> None:
        """A panel, with its data."""
        where = panel["gridPos"]
        left = _GAP_PX + where["x"] * _COLUMN_PX
        top = _HEAD_PX + y * (_ROW_PX + _GAP_PX)
        width = where["w"] * _COLUMN_PX - _GAP_PX
        height = where["h"] * (_ROW_PX + _GAP_PX) - _GAP_PX
        place = Place(self.figure, left / self._width_px, 1 - (top + height) / self._height_px, width, height)
        queries = [
            query
            for query in list_queries()
            if query.dashboard == dashboard and query.panel.get("id") == panel["id"]
        ]
        frames = [(query, self._grafana.fetch(query)) for query in queries]
        marks = self._fetch_marks(dashboard) if panel["type"] in ("timeseries", "heatmap") else []
        span = (self._grafana.start_s, self._grafana.end_s)
        drawing.draw(place, panel, frames, drawing.Times(span, self._grafana.compute_step_s(panel), marks))

    def _fetch_marks(self, dashboard: str) -> list[Mark]:
        colours = {
            mark["name"]: mark["iconColor"] for mark in load_dashboards()[dashboard]["annotations"]["list"]
        }
        return [
            Mark(at, colours[query.title])
            for query in list_queries()
            if query.dashboard == dashboard and query.source == Source.ANNOTATION
            for frame in self._grafana.fetch(query)
            for at in frame.times_s
        ]

    def _say(self, y_px: float, text: str, **style: object) -> None:
        x, y = (_GAP_PX + 4) / self._width_px, 1 - y_px / self._height_px
        self.figure.text(x, y, text, va="center", **style)


def find_span(loki_url: str, run: str) -> tuple[float, float]:
    """When a run began and ended, as the table of runs of the dashboards says."""
    now = time.time()
    grafana = Grafana(loki_url, now - _LOOK_BACK_S, now, {"run": run})
    ends = {query.ref: query for query in list_queries() if query.title == "Runs"}
    return _pick(grafana, ends["A"], run) / 1000, _pick(grafana, ends["B"], run) / 1000


def draw_run(loki_url: str, run: str, path: Path) -> None:
    """Draw the dashboard of a run, and how its request space was covered."""
    start_s, end_s = find_span(loki_url, run)
    grafana = Grafana(loki_url, start_s, end_s, {"run": run})
    documents = load_dashboards()
    panels = documents["oku-run"]["panels"]
    last = next(place for place, panel in enumerate(panels) if panel["title"] == _LAST_ROW)
    coverage = [panel for panel in documents["oku-coverage"]["panels"] if panel["title"] in _COVERAGE_PANELS]
    rows = panels[last]["gridPos"]["y"]
    title = f"Oku / Run    {run}"
    caption = (
        "Rendered from the queries and the JSON of the dashboards by docs/tools/panels.py, not by Grafana."
        " Times are UTC."
    )
    picture = Picture(grafana, rows + 1 + coverage[0]["gridPos"]["h"], title, caption)
    for panel in panels[:last]:
        if panel["type"] == "row":
            picture.add_heading(panel, panel["gridPos"]["y"])
        else:
            picture.add("oku-run", panel, panel["gridPos"]["y"])
    picture.add_heading({"title": "From Oku / Coverage"}, rows)
    for panel in coverage:
        picture.add("oku-coverage", panel, rows + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.figure.savefig(path, dpi=100, metadata={"Software": None})


def _pick(grafana: Grafana, query: DashboardQuery, run: str) -> float:
    found: list[Frame] = [frame for frame in grafana.fetch(query) if frame.labels.get("run") == run]
    if not found:
        raise SystemExit(f"{run}: Loki has no range of this run in the last seven days")
    return float(found[0].values[0])


def main() -> None:
    """Read the command line and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loki", help="URL of a Loki, such as http://127.0.0.1:3100")
    parser.add_argument("run", help="id of a run whose lines are in it")
    parser.add_argument("-o", "--output", type=Path, default=_IMAGE, help="the PNG (default: %(default)s)")
    arguments = parser.parse_args()
    with mpl.rc_context(drawing.STYLE):
        draw_run(arguments.loki, arguments.run, arguments.output)


if __name__ == "__main__":
    main()
