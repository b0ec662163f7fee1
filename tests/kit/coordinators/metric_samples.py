"""The samples that `/metrics` shows of a coordinator."""

from prometheus_client.parser import text_string_to_metric_families

from oku_coordinator.telemetry.prometheus.metrics import Metrics


def read_samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels."""
    families = text_string_to_metric_families(metrics.expose()[0].decode())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
