"""The dashboards as files: which there are, where they stand, what they must contain."""

import json
from pathlib import Path

from oku_dashboards import compare, coverage, run, workers

FOLDER = Path(__file__).parents[2] / "oku" / "dashboards"


def build_files() -> dict[Path, str]:
    """All files with what they must contain."""
    return {
        FOLDER / f"{dashboard.uid}.json": json.dumps(dashboard.to_json(), indent=2, ensure_ascii=False) + "\n"
        for dashboard in (run.build(), workers.build(), coverage.build(), compare.build())
    }
