"""How long the queries of each dashboard take for an hour of 100,000,000 requests.

`python -m tests.dashboards.speed`: a real Loki is filled with synthetic lines, which takes some minutes; then
each query is asked as Grafana would ask it, one after another. Nothing is asserted.
"""

import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.kit.loki.dashboards import Grafana, list_queries
from tests.kit.loki.loki import Loki
from tests.kit.runs.synthetic_run import SyntheticRun, push

_HOUR_S = 3600
_GENEROUS = {
    "ingestion_rate_mb": 200,
    "ingestion_burst_size_mb": 400,
    "per_stream_rate_limit": "200MB",
    "per_stream_rate_limit_burst": "400MB",
}
"""An hour of lines comes at once."""


def main() -> None:
    """Fill, ask, tell."""
    now = int(time.time())
    run = SyntheticRun(
        run="20261121-140000-aaaa", start=now - _HOUR_S, seconds=_HOUR_S, workers=6, rate=4630, has_rate=True
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Loki(Path(folder), settings={"limits_config": _GENEROUS}) as loki,
    ):
        push(loki.url, run.build_lines())
        grafana = Grafana(loki.url, now - _HOUR_S, now, {"run": run.run, "run_a": run.run, "run_b": run.run})
        taken_s: dict[str, list[float]] = defaultdict(list)
        for query in list_queries():
            start_s = time.perf_counter()
            grafana.fetch(query)
            taken_s[query.dashboard].append(time.perf_counter() - start_s)
    for dashboard, times in taken_s.items():
        text = f"{dashboard}: {len(times)} queries, {sum(times):.1f} s, the slowest {max(times):.2f} s\n"
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
