from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.kit.coordinators.iterations import build_inner
from tests.kit.coordinators.parts import build_closed_part, build_open_part

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.telemetry.prometheus.target_metrics import (
    BOUNDS_S,
    RequestFigures,
    build_inner_figures,
    build_target_figures,
)
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.checkpoint import Part
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec

Read = Callable[[], list[RequestFigures]]
TARGETS = [{"name": "item", "url": "/item"}, {"name": "buy", "url": "/buy"}]
SPEC = parse_spec(Source(None, {"requests": 100, "base-url": "http://shop.test", "targets": TARGETS}))


def fold(parts: Mapping[tuple[str, str], Part]) -> RunAccount:
    """The account of parts by phase and name."""
    account = RunAccount()
    for name, part in parts.items():
        account.parts.open(name).add(part)
    return account


def scrape(read: Read) -> dict[tuple[str, ...], float]:
    """Every sample of the targets by its name, its target, and the outcome or the bound if it has one."""
    metrics = Metrics()
    metrics.show_targets(read)
    families = text_string_to_metric_families(metrics.expose()[0].decode())
    return {
        (
            sample.name,
            *(sample.labels[label] for label in ("target", "outcome", "le") if label in sample.labels),
        ): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("oku_target_")
    }


def test_each_target_has_a_counter_for_every_outcome() -> None:
    """All are there from its start: a counter that begins with its first event hides that event."""
    accounts = fold({
        ("warm-up", "item"): build_closed_part([1000]),
        ("main", "item"): build_closed_part([2000, 3001], 4),
    })  # fmt: skip
    samples = scrape(lambda: build_target_figures("r1", SPEC, accounts))
    assert samples["oku_target_requests_total", "item", "ok"] == 2
    assert samples["oku_target_requests_total", "item", "unexpected_status"] == 1
    assert samples["oku_target_requests_total", "item", "timeout"] == 4
    assert all(samples["oku_target_requests_total", "buy", outcome] == 0 for outcome in OUTCOMES)
    assert samples["oku_target_received_bytes_total", "item"] == 2


def test_latencies_are_in_the_bucket_whose_bound_they_do_not_exceed() -> None:
    """All phases count, and the sum is exact."""
    accounts = fold({
        ("warm-up", "item"): build_closed_part([1000, 1002]),
        ("main", "item"): build_closed_part([2_000_000, 90_000_000]),
    })  # fmt: skip
    samples = scrape(lambda: build_target_figures("r1", SPEC, accounts))
    counts = {
        bound: samples["oku_target_latency_seconds_bucket", "item", bound]
        for bound in ("0.0005", "0.001", "0.0025", "1.0", "2.5", "60.0", "+Inf")
    }
    assert list(counts.values()) == [0, 1, 2, 2, 3, 3, 4]
    assert samples["oku_target_latency_seconds_count", "item"] == 4
    assert samples["oku_target_latency_seconds_sum", "item"] == pytest.approx(92.002002)
    assert ("oku_target_latency_seconds_count", "buy") not in samples


def test_a_run_with_a_rate_has_all_three_times_and_a_target_may_have_no_name() -> None:
    """A run without a rate has latencies alone."""
    spec = parse_spec(Source(None, {"url": "http://shop.test/", "requests": 10, "rate": "10/s"}))
    samples = scrape(lambda: build_target_figures("r1", spec, fold({("", ""): build_open_part([4000], 1)})))
    assert samples["oku_target_latency_seconds_count", ""] == 1
    assert samples["oku_target_response_time_seconds_sum", ""] == pytest.approx(0.014)
    assert samples["oku_target_lateness_seconds_bucket", "", "0.01"] == 2
    closed = scrape(lambda: build_target_figures("r1", Spec(), fold({("", ""): build_closed_part([4000])})))
    assert not [sample for sample in closed if "lateness" in sample[0] or "response_time" in sample[0]]


def test_without_a_run_there_are_no_targets() -> None:
    """Nothing is shown, not even zeros."""
    assert scrape(list) == {}


@given(st.lists(st.integers(1, 100_000_000)))
def test_buckets_count_what_does_not_exceed_their_bounds(latencies_us: list[int]) -> None:
    """To the resolution of the histogram: what is above a bound by less than 1 part in 1024 may be below."""
    figures, _ = build_target_figures("r1", SPEC, fold({("", "item"): build_closed_part(latencies_us)}))
    if not latencies_us:
        assert not figures.times
        return
    *bounded, total = figures.times[Time.LATENCY].counts
    assert total == len(latencies_us)
    for bound_s, count in zip(BOUNDS_S, bounded, strict=True):
        bound_us = bound_s * 1_000_000
        least = sum(latency_us <= bound_us for latency_us in latencies_us)
        most = sum(latency_us < bound_us * (1 + 1 / 1024) + 1 for latency_us in latencies_us)
        assert least <= count <= most


def test_inner_requests_have_counters_and_latencies_by_name() -> None:
    """All of their phases together, and none of the run."""
    accounts = fold({("", ""): build_closed_part([1000] * 7)})
    for part, latencies_us in (
        (("main", "login"), [1000, 2001]),
        (("warm-up", "login"), [9000]),
        (("", "a"), []),
    ):
        accounts.inner.open(part).add(build_inner(part[1], latencies_us))
    metrics = Metrics()
    metrics.show_inner(lambda: build_inner_figures("r1", accounts))
    families = {
        family.name: family for family in text_string_to_metric_families(metrics.expose()[0].decode())
        if family.name.startswith("oku_inner_")
    }  # fmt: skip
    samples = {
        (sample.name, *(sample.labels.get(label, "") for label in ("name", "outcome", "le"))): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert set(families) == {"oku_inner_requests", "oku_inner_received_bytes", "oku_inner_latency_seconds"}
    assert {sample.labels["run"] for family in families.values() for sample in family.samples} == {"r1"}
    assert samples["oku_inner_requests_total", "login", "ok", ""] == 3
    assert all(samples["oku_inner_requests_total", "a", outcome, ""] == 0 for outcome in OUTCOMES)
    assert samples["oku_inner_received_bytes_total", "login", "", ""] == 30
    assert samples["oku_inner_latency_seconds_bucket", "login", "", "0.0025"] == 2
    assert samples["oku_inner_latency_seconds_count", "login", "", ""] == 3
