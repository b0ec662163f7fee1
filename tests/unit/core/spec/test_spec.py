import msgspec
import pytest
from hypothesis import given
from tests.kit.runs.specs import specs

from oku_core.spec.spec import Engine, Spec, build_expected_statuses


def test_without_a_word_a_spec_is_complete() -> None:
    """A hundred thousand GETs to Oku's own servers: every attribute has a default."""
    spec = Spec()
    assert (spec.requests, spec.method, spec.brings_servers) == (100_000, "GET", True)
    assert (spec.concurrency, spec.timeout_s, spec.delay, spec.seed) == (100, 10.0, None, None)
    assert (spec.engine, spec.insecure, spec.max_redirects, spec.cookies) == (Engine.AIOHTTP, False, 0, False)
    assert build_expected_statuses(spec) == {200}


@given(specs())
def test_a_spec_survives_the_wire(spec: Spec) -> None:
    """A worker gets the spec that the coordinator has."""
    assert msgspec.json.decode(msgspec.json.encode(spec), type=Spec) == spec


@given(specs())
def test_what_is_expected_is_a_set_of_statuses(spec: Spec) -> None:
    """Every status of the spec, and every one of the hundred that an `xx` stands for, is in it."""
    statuses = build_expected_statuses(spec)
    expected = {
        code
        for code in range(100, 600)
        for item in spec.expect_status
        if item in {str(code), f"{code // 100}xx"}
    }
    assert statuses == expected
    assert statuses


@pytest.mark.parametrize(("grace_s", "drain_s"), [(None, 8.0), (0.0, 0.0), (20.0, 20.0)])
def test_requests_in_flight_may_go_on_until_their_timeout(grace_s: float | None, drain_s: float) -> None:
    """When a run is stopped, and a second longer, in which that is noticed; unless the spec says how long."""
    assert Spec(timeout_s=7.0, grace_s=grace_s).drain_s == drain_s
