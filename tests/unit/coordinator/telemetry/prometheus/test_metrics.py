import pytest
from tests.kit.coordinators.metric_samples import read_samples

from oku_coordinator.telemetry.prometheus.metrics import Metrics
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
