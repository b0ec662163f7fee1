import json

import pytest
from hypothesis import given
from tests.kit.runs.specs import specs

from oku_core.json_reader import JsonTypeError
from oku_core.spec.spec import Spec, decode_spec, encode_part, encode_spec
from oku_core.spec.values.check import list_codes


def test_every_attribute_has_a_default() -> None:
    """By default, a spec describes a hundred thousand GETs to Oku's own servers."""
    spec = Spec()
    assert (spec.requests, spec.method, spec.brings_servers) == (100_000, "GET", True)
    assert (spec.concurrency, spec.timeout_s, spec.delay, spec.seed) == (100, 10.0, None, None)
    assert (spec.engine, spec.insecure, spec.max_redirects, spec.cookies) == (None, False, 0, False)
    assert list_codes(spec.expect_status) == set(range(200, 300))


def test_a_stored_spec_keeps_the_defaults_of_its_day() -> None:
    """It is stored with every default written out: a default that changes later changes no run."""
    stored = json.loads(encode_spec(Spec()))
    assert stored.keys() == set(Spec.__struct_fields__)
    stored["expect_status"] = ["200"]  # the default before 0.1
    assert list_codes(decode_spec(json.dumps(stored)).expect_status) == {200}


@given(specs())
def test_a_spec_survives_the_wire_with_its_statuses(spec: Spec) -> None:
    """A worker gets the same spec that the coordinator has."""
    assert decode_spec(encode_spec(spec)) == spec
    # The expected codes are those of all statuses.
    statuses = list_codes(spec.expect_status)
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
    """After a stop they have their timeout and a second to notice it, unless the spec sets the grace."""
    assert Spec(timeout_s=7.0, grace_s=grace_s).drain_s == drain_s


WRITTEN = (
    '{"urls":["http://me@h/{i}?a=b"],"headers":["A:b "],"expect_status":["2xx","404"],"delay":"0..3s",'
    '"proxy":"http://p:1"}'
)


def test_a_stored_spec_is_parsed_once() -> None:
    """Its JSON has each part as the user wrote it, and a spec that is read from it has the parsed parts."""
    spec = decode_spec(WRITTEN)
    assert (spec.urls[0].host, spec.urls[0].path, spec.urls[0].query) == ("h", "/{i}", "a=b")
    assert (spec.headers[0].name, spec.headers[0].value) == ("A", "b")
    assert list_codes(spec.expect_status) == {*range(200, 300), 404}
    assert spec.delay is not None
    assert spec.delay.mean_s == 1.5
    assert spec.proxy is not None
    assert spec.proxy.authority == "p:1"
    assert json.loads(WRITTEN).items() <= json.loads(encode_spec(spec)).items()
    for part in ['"delay":"soon"', '"expect_status":["6xx"]', '"urls":["http://["]', '"headers":[5]']:
        # A part that cannot be read is an error of its type.
        with pytest.raises(JsonTypeError):
            decode_spec(f"{{{part}}}")
    # Only the parts of a spec are written as text. Any other type is a bug in Oku.
    with pytest.raises(NotImplementedError):
        encode_part(object())
