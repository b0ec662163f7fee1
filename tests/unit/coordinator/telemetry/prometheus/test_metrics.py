import pytest
from tests.kit.coordinators.metric_samples import read_samples

from oku_coordinator.telemetry.prometheus.metrics import LIFETIME_S, Metrics, MetricsCache
from oku_coordinator.telemetry.prometheus.protobuf_format import CONTENT_TYPE
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.messaging.credentials import Credential, CredentialFault


@pytest.fixture
def metrics() -> Metrics:
    """Nothing has happened yet."""
    return Metrics()


def test_every_verdict_and_every_reason_is_there_from_the_start(metrics: Metrics) -> None:
    """A counter that begins with its first event hides that event from a rate."""
    samples = read_samples(metrics)
    assert all(samples["oku_messages_total", verdict] == 0 for verdict in MessageVerdict)
    assert all(samples["oku_leases_expired_total", reason] == 0 for reason in ExpiryReason)


def test_callers_that_were_refused_are_counted_by_reason(metrics: Metrics) -> None:
    """All that there can be is there from the start; a token does not expire."""
    samples = read_samples(metrics)
    before = {key: value for key, value in samples.items() if key[0] == "oku_callers_refused_total"}
    names = {(credential, refusal) for credential in Credential for refusal in CredentialFault}
    assert {key[1:] for key in before} == names - {(Credential.TOKEN, CredentialFault.EXPIRED)}
    assert set(before.values()) == {0}
    for _ in range(2):
        metrics.count_refusal(Credential.TICKET, CredentialFault.WRONG)
    after = read_samples(metrics)
    assert {key: after[key] for key in before if after[key]} == {
        ("oku_callers_refused_total", "ticket", "wrong"): 2
    }


def test_messages_are_counted_by_what_became_of_them(metrics: Metrics) -> None:
    """The time of the transaction that took them in is observed, too."""
    metrics.count_messages([MessageVerdict.CLOSED, MessageVerdict.ACCOUNTED, MessageVerdict.ACCOUNTED], 0.25)
    metrics.count_messages([MessageVerdict.ACCOUNTED], 0.5)
    samples = read_samples(metrics)
    assert samples["oku_messages_total", "accounted"] == 3
    assert samples["oku_messages_total", "closed"] == 1
    assert samples["oku_messages_total", "late"] == 0
    assert (samples["oku_commit_seconds_count",], samples["oku_commit_seconds_sum",]) == (2, 0.75)


def test_workers_are_shown_with_how_well_they_know_the_clock(metrics: Metrics) -> None:
    """As the last tick has them."""
    metrics.show_workers(2, 0.003)
    samples = read_samples(metrics)
    assert (samples["oku_workers",], samples["oku_clock_bound_seconds",]) == (2, 0.003)


def test_the_content_has_the_type_that_is_asked_for(metrics: Metrics) -> None:
    """Text, unless a Prometheus wants native histograms."""
    assert metrics.expose()[1].startswith("text/plain; version=")
    assert metrics.expose("application/openmetrics-text;q=0.6,*/*;q=0.1") == metrics.expose()
    body, content_type = metrics.expose(CONTENT_TYPE)
    assert content_type == CONTENT_TYPE
    assert b"oku_messages_total" in body


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
