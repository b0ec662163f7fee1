"""The series that `/metrics` has of a run at rest."""

from typing import Any


def list_run_series(summary: dict[str, Any]) -> dict[str, float]:
    """By name with labels, as they stand there; the values are those of the summary."""
    run = summary["run"]
    series = {
        f'oku_run_requests{{part="accounted",run="{run}"}}': summary["accounted"],
        f'oku_run_requests{{part="leased",run="{run}"}}': 0,
        f'oku_run_requests{{part="pending",run="{run}"}}': summary["requests"] - summary["accounted"],
        f'oku_run_requests{{part="resent_at_most",run="{run}"}}': summary["resent_at_most"],
        f'oku_run_queued_seconds{{run="{run}"}}': summary["queued_s"],
        f'oku_target_received_bytes_total{{run="{run}",target=""}}': summary["bytes_received"],
    }
    for name in ("requests_per_second", "planned_requests_per_second", "in_flight"):
        series[f'oku_run_{name}{{run="{run}"}}'] = 0
    for outcome, requests in summary["outcomes"].items():
        series[f'oku_run_outcomes{{outcome="{outcome}",run="{run}"}}'] = requests
        series[f'oku_target_requests_total{{outcome="{outcome}",run="{run}",target=""}}'] = requests
    for cause, requests in summary["not_sent"].items():
        series[f'oku_run_not_sent{{cause="{cause}",run="{run}"}}'] = requests
    return series
