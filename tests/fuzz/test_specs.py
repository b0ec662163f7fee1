"""Whatever stands in a spec, it is read in bounded time or refused in one line."""

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kit.faults.mutation import mutate

from oku_cli.options.spec.spec_file import read_spec_file
from oku_core.errors import UserError
from oku_core.json_reader import decode_json
from oku_core.spec.fields import FIELD_BY_KEY
from oku_core.spec.parser import Source, build_mapping, parse_spec

LONGEST_S = 1.0
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
    st.sampled_from(["1k", "5s", "20ms", "0..3s", "exp:50ms", "2xx", "http://h/{i}", "GET", "A: b", "1e400"]),
    st.sampled_from(["5000/s", "300/m", "1m:0..5000/s", "soak=10m:5k/s", "1m:0..200", "send", "poisson"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
KEYS = st.sampled_from(sorted(FIELD_BY_KEY)) | st.text(max_size=20)
SPEC = b"""name: every-item
requests: 30_000
url:
  - http://127.0.0.1:8080/items/{i}
  - http://127.0.0.1:8080/prices/{i}
header:
  Accept: application/json
  X-Request-Id: "oku-{i}"
concurrency: 200
timeout: 5s
expect-status: [200, 404]
stages: [1m:0..5000/s, {name: soak, for: 10m, rate: 5000/s}]
late: send
arrivals: poisson
warm-up: 30s
cacert: &a [*a, !!binary aGk=, {<<: {x: 1}}]
"""
"""With most of what YAML has."""


def assert_one_line(error: UserError) -> None:
    """What a user is told can be shown in a terminal."""
    assert str(error).isprintable()
    assert len(str(error)) < 1000


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_a_mapping_is_a_spec_or_refused(values: dict[str, object]) -> None:
    """A spec that is read can be written, and reads again as the same."""
    try:
        spec = parse_spec(Source("spec", values))
    except UserError as error:
        assert_one_line(error)
    else:
        assert parse_spec(Source("spec", build_mapping(spec))) == spec


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass")))
def test_a_file_of_anything_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    """Anything is read or refused within a second, as YAML and as JSON."""
    for suffix in ("yaml", "json"):
        check_file(tmp_path / f"spec.{suffix}", content)


def test_a_file_that_is_nearly_right_is_read_or_refused(tmp_path: Path, scale: int, seed: int) -> None:
    """Files with a few mistakes are read or refused within a second as well."""
    for number in range(1000 * scale):
        check_file(tmp_path / "spec.yaml", mutate(SPEC, f"{seed} {number}"))


def check_file(path: Path, content: bytes) -> None:
    """Read a file."""
    path.write_bytes(content)
    began = time.process_time()
    try:
        source = read_spec_file(str(path))
        parse_spec(source)
    except UserError as error:
        assert_one_line(error)
    assert time.process_time() - began < LONGEST_S, content


@given(st.binary(max_size=200))
def test_a_body_of_anything_is_decoded_or_refused(content: bytes) -> None:
    """The API decodes any body or refuses it in one line."""
    try:
        decode_json(content)
    except ValueError as error:
        said = str(error)
    else:
        said = ""
    assert not said or said.isprintable()


@pytest.mark.parametrize("size", [1 << 20])
@pytest.mark.parametrize(
    "piece", [b"[", b"{a: ", b"- ", b"a: &x ", b"? ", b"'", b"|\n ", b"\t", b"#", b"9", b"!!"]
)
def test_a_file_as_large_as_may_be_is_read_or_refused(tmp_path: Path, piece: bytes, size: int) -> None:
    """The largest file is read or refused in bounded time; repetition costs parsers most."""
    check_file(tmp_path / "spec.yaml", piece * (size // len(piece)))
