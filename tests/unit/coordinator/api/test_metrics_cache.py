from oku_coordinator.telemetry.prometheus.metrics import LIFETIME_S, Metrics, MetricsCache
from oku_coordinator.telemetry.prometheus.protobuf_format import CONTENT_TYPE


class SlowMetrics(Metrics):
    """Metrics that take their time, by a clock that only they move."""

    def __init__(self) -> None:
        super().__init__()
        self.takes_s = 0.0
        self.now = 100.0
        self.made: list[str] = []

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """Take note of the call."""
        self.made.append(accept)
        self.now += self.takes_s
        return super().expose(accept)


def test_metrics_are_built_once_a_second_for_all_callers() -> None:
    """Each format by itself, whatever else stands in the header."""
    metrics = SlowMetrics()
    cache = MetricsCache(metrics, lambda: metrics.now)
    for _ in range(3):
        metrics.show_workers(len(metrics.made))
        for number in range(90):
            body, kind = cache.expose(f"text/plain;q=0.{number}")
            assert b"oku_workers " in body
            assert kind.startswith("text/plain")
            assert cache.expose(f"{CONTENT_TYPE}, text/plain;q=0.{number}")[1] == CONTENT_TYPE
        metrics.now += LIFETIME_S
    assert len(metrics.made) == 6


def test_what_is_shown_is_a_second_old_at_most() -> None:
    """The next call after that shows new figures."""
    metrics = SlowMetrics()
    cache = MetricsCache(metrics, lambda: metrics.now)
    for workers in range(3):
        metrics.show_workers(workers)
        assert f"oku_workers {float(workers)}".encode() in cache.expose("")[0]
        metrics.show_workers(100)
        metrics.now += 0.99 * LIFETIME_S
        assert f"oku_workers {float(workers)}".encode() in cache.expose("")[0]
        metrics.now += 0.02 * LIFETIME_S


def test_metrics_that_take_long_are_kept_for_longer() -> None:
    """Callers in a loop cost a tenth of the time, and callers that came meanwhile share the answer."""
    metrics = SlowMetrics()
    metrics.takes_s = 0.5
    cache = MetricsCache(metrics, lambda: metrics.now)
    cache.expose("")
    cache.expose("")
    assert len(metrics.made) == 1
    metrics.now += 4.9
    cache.expose("")
    assert len(metrics.made) == 1
    metrics.now += 0.2
    cache.expose("")
    assert len(metrics.made) == 2
