from prometheus_client.parser import text_string_to_metric_families
from tests.kit.outcomes import make_counts

from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.telemetry.prometheus.run_metrics import RunFigures
from oku_core.accounting.outcome import NOT_SENT_CAUSES, OUTCOMES

LABELS = ("run", "part", "outcome", "cause")


def test_each_run_has_every_series_with_its_id() -> None:
    """All outcomes and causes are there from its start; nothing is without the label."""
    runs = [
        RunFigures(
            run="r2", requests=(40, 20, 40, 7), outcomes=make_counts(42, not_sent=2, lost=1),
            not_sent=[0, 2, 0], rate_rps=12.0, planned_rps=15.0, in_flight=9, queued_s=2.5,
        ),
        RunFigures(
            run="r1", requests=(10, 0, 0, 0), outcomes=make_counts(10), not_sent=[0] * 3, queued_s=0.0
        ),
    ]  # fmt: skip
    metrics = Metrics()
    metrics.show_runs(lambda: runs)
    samples = {
        (sample.name, *(sample.labels[label] for label in LABELS if label in sample.labels)): sample.value
        for family in text_string_to_metric_families(metrics.expose()[0].decode())
        for sample in family.samples
        if sample.name.startswith("oku_run_")
    }
    assert {key[1] for key in samples} == {"r1", "r2"}
    assert len(samples) == 2 * (4 + len(OUTCOMES) + len(NOT_SENT_CAUSES) + 4)
    parts = ("accounted", "leased", "pending", "resent_at_most")
    assert [samples["oku_run_requests", "r2", part] for part in parts] == [40, 20, 40, 7]
    assert [samples["oku_run_outcomes", "r2", outcome] for outcome in ("ok", "not_sent", "lost")] == [
        42,
        2,
        1,
    ]
    assert [samples["oku_run_not_sent", "r2", cause] for cause in ("late", "not_dealt")] == [2, 0]
    assert [
        (samples[f"oku_run_{name}", "r2"], samples[f"oku_run_{name}", "r1"])
        for name in ("requests_per_second", "planned_requests_per_second", "in_flight", "queued_seconds")
    ] == [(12, 0), (15, 0), (9, 0), (2.5, 0)]
