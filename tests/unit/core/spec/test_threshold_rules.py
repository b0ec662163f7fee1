from typing import Any

import pytest

from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.spec import decode_spec, encode_spec

_SCENARIO = f"scenario.py@sha256:{'0' * 64}:1:scenario.py"
_OPEN = {"stages": ["ramp=10s:0..10/s", "steady=10s:10/s"]}
_TARGETS = {
    "base_url": "http://127.0.0.1/",
    "targets": [{"name": "buy", "url": "/buy"}, {"name": "home", "url": "/"}],
}


@pytest.mark.parametrize(
    ("values", "threshold", "error"),
    [
        ({}, "p99 of buy < 1s", "the run has no target buy; it has one, without a name"),
        (_TARGETS, "p99 of sell < 1s", "the run has no target sell; it has buy, home"),
        ({}, "p99 < 1s during steady", "the run has no phase steady; it has only one, without a name"),
        (_OPEN, "p99 < 1s during soak", "the run has no phase soak; it has ramp, steady"),
        ({"warm_up": "1s"}, "ok > 1 during warmup", "the run has no phase warmup; it has warm-up, main"),
        ({}, "response_time p99 < 1s", "only the requests of a run with a rate have a response time"),
        ({}, "rate >= 0.9 of plan", "only a run with a rate has a plan"),
    ],
)
def test_a_threshold_on_what_the_run_does_not_have_is_refused(
    values: dict[str, Any], threshold: str, error: str
) -> None:
    """The line names the threshold and what the run has."""
    with pytest.raises(SpecError) as raised:
        parse_spec(Source("spec.yaml", {**values, "thresholds": ["ok > 1", threshold]}))
    assert str(raised.value) == f"spec.yaml: thresholds: {threshold}: {error}"


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        (_TARGETS, "p99 of buy < 1s: abort"),
        (_OPEN, "response_time p99 < 1s during steady"),
        (_OPEN, "rate >= 99% of plan over 10s: abort"),
        ({"warm_up": "1s"}, "ok > 1 during warm-up"),
    ],
)
def test_a_spec_with_thresholds_is_written_and_read_again_as_it_was(
    values: dict[str, Any], threshold: str
) -> None:
    """As JSON for the ledger, and under the keys of users."""
    spec = parse_spec(Source("spec", {**values, "thresholds": threshold}))

    assert spec.thresholds == (threshold,)
    assert decode_spec(encode_spec(spec)) == spec
    assert parse_spec(Source("spec", build_mapping(spec))) == spec


@pytest.mark.parametrize(
    ("threshold", "error"),
    [
        ("p99 of orders < 1s: abort", None),
        ('failed of "any name" < 1%', None),
        ("response_time p99 < 1s", None),
        ("response_time p99 of orders < 1s", "the requests that user code makes have no response time"),
        ("lateness p99 of orders < 1s", "the requests that user code makes have no lateness"),
    ],
)
def test_a_threshold_of_user_code_may_name_any_request(threshold: str, error: str | None) -> None:
    """Which names there are is known when they are counted; due times are those of iterations."""
    values = {"engine": "python", "scenario": _SCENARIO, **_OPEN, "thresholds": threshold}
    if error is None:
        assert parse_spec(Source("spec", values)).thresholds == (threshold,)
        return
    with pytest.raises(SpecError, match=error):
        parse_spec(Source("spec", values))
