"""Whatever shows the phases of a run with a rate shows what was due and what came of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oku_cli.report.history_reader import RunHistory
from oku_core.summary.request_summary import PhaseSummary
from oku_core.summary.summary_lines import build_phase_lines
from oku_core.tables.part_tables import build_phases
from oku_dashboards.rate_panels import build_phases_panel as build_panel

FIGURES = {
    "due": "due",
    "completed": "completed",
    "planned_rps": "planned/s",
    "sent_rps": "sent/s",
    "completed_rps": "completed/s",
}
"""The fields, each with the head of its column."""
ROOT = Path(__file__).parents[4]


def test_every_place_has_the_same_figures(make_open_history: Callable[..., RunHistory]) -> None:
    """The table that all screens show, JSON, Loki, dashboard and the page of figures."""
    summary = make_open_history().summary
    metrics = (ROOT / "docs/metrics.md").read_text()
    panel = build_panel()
    dashboard = json.loads((ROOT / "charts/oku/dashboards/oku-run.json").read_text())
    written = [
        target["expr"]
        for each in dashboard["panels"]
        if each["title"] == panel.title
        for target in each["targets"]
    ]
    heads: dict[str, Any] = {
        "table": [column.head for column in build_phases(summary).columns],
        "dashboard": list(panel.queries),
    }
    fields: dict[str, Any] = {
        "JSON": PhaseSummary.__struct_fields__,
        "Loki": next(iter(build_phase_lines(summary.phases))),
        "dashboard": [name for name in FIGURES if any(f"unwrap {name} [" in query for query in written)],
        "docs, summary": find_names(next(line for line in metrics.splitlines() if "| `phases[]` |" in line)),
        "docs, Loki": find_names(next(line for line in metrics.splitlines() if "**`phase`**" in line)),
    }
    missing = [f"{place}: {head}" for place in heads for head in FIGURES.values() if head not in heads[place]]
    missing += [f"{place}: {name}" for place in fields for name in FIGURES if name not in fields[place]]
    assert not missing
    assert "rate_rps" not in PhaseSummary.__struct_fields__


def find_names(text: str) -> set[str]:
    """What stands in backticks."""
    return set(text.split("`")[1::2])
