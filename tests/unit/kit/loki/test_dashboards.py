"""The kit that asks a Loki what Grafana would ask fills in variables and names series as Grafana does."""

import pytest
from tests.kit.loki.dashboards import Grafana, Source, format_step, list_queries, parse_step_s


@pytest.mark.parametrize(
    ("span_s", "interval", "points", "step_s"),
    [
        (3600, "1s", 780, 5.0),  # 4.6 s
        (300, "1s", 780, 1.0),  # 0.4 s, but a tick at least
        (3600, "10s", 780, 10.0),
        (3600, "1s", 35, 120.0),  # 102.9 s
        (86400, "1s", 780, 120.0),  # 110.8 s
        (7 * 86400, "1s", 780, 900.0),  # 775.4 s
    ],
)
def test_steps_are_rounded(span_s: float, interval: str, points: int, step_s: float) -> None:
    """A step is a nice number near the time range by the points, and not below that of the panel."""
    grafana = Grafana("http://nowhere", 0, span_s, {})
    assert grafana.compute_step_s({"interval": interval, "maxDataPoints": points}) == step_s


@pytest.mark.parametrize(
    ("text", "step_s"), [("1s", 1), ("10s", 10), ("500ms", 0.5), ("2m", 120), ("1h", 3600)]
)
def test_steps_are_written_and_read(text: str, step_s: float) -> None:
    """A step is written in the largest unit that divides it."""
    assert parse_step_s(text) == step_s
    assert format_step(step_s) == text


def test_nothing_is_left_unfilled() -> None:
    """A query that goes to Loki has no variable in it."""
    runs = {"run": "20261121-1-aaaa", "run_a": "20261121-1-aaaa", "run_b": "20261121-2-bbbb"}
    grafana = Grafana("http://nowhere", 0, 3600, runs)
    for query in list_queries():
        assert "$" not in grafana.fill(query), query


def test_every_part_of_a_dashboard_is_queried() -> None:
    """Panels of all kinds, annotations and variables have queries."""
    assert {query.source for query in list_queries()} == set(Source)
