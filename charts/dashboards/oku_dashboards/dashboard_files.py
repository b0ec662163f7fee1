"""The dashboards as files: where each is and what it contains."""

import json
from pathlib import Path

from oku_dashboards import compare_dashboard, coverage_dashboard, run_dashboard, workers_dashboard

FOLDER = Path(__file__).parents[2] / "oku" / "dashboards"


def build_files() -> dict[Path, str]:
    """Every file with its content."""
    return {
        FOLDER / f"{dashboard.uid}.json": json.dumps(dashboard.to_json(), indent=2, ensure_ascii=False) + "\n"
        for dashboard in (
            run_dashboard.build_run_dashboard(),
            workers_dashboard.build_workers_dashboard(),
            coverage_dashboard.build_coverage_dashboard(),
            compare_dashboard.build_compare_dashboard(),
        )
    }
