from pathlib import Path

import pytest

from oku_core.data.data_format import DataFormat
from oku_core.spec.body_memory import find_memory_fault
from oku_core.spec.data_file import DataFile
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.file_reference import FileRef

FAULT = (
    "body: each request has its own body, and 100 in flight per worker take 100.3 kB of memory, but a worker"
    " may use 100.0 kB: lower the concurrency, or send the same body with all requests"
)
FILE = FileRef.build("0" * 64, 1003, "body.bin")


def find(spec: Spec, in_flight: int, limit_bytes: int, path: Path = Path("missing")) -> str:
    """What is wrong with a spec, whose file of the run is here."""
    return find_memory_fault(spec, in_flight, limit_bytes, lambda _: path)


def test_bodies_that_differ_are_refused_where_they_do_not_fit() -> None:
    """By how many are in flight; nothing is refused where the memory is not known."""
    spec = Spec(body="{i}" + "x" * 1000)
    assert find(spec, 100, 100_000) == FAULT
    assert find(spec, 99, 100_000) == find(spec, 100, 100_300) == find(spec, 100, 0) == ""


@pytest.mark.parametrize("body", [None, "x" * 1003, "{j}" + "x" * 1000])
def test_a_body_that_all_requests_have_is_not_refused(body: str | None) -> None:
    """It is in memory once; braces with something else in them are text."""
    assert find(Spec(body=body), 100, 100_000) == ""


def test_a_column_makes_bodies_differ() -> None:
    """As the index does."""
    table = DataFile(
        name="a.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("j",), index="1" * 64
    )
    assert find(Spec(body="{j}" + "x" * 1000, data=table), 100, 100_000) == FAULT


@pytest.mark.parametrize(("content", "fault"), [(b"\xff{i}" + b"x" * 999, FAULT), (b"\xff" * 1003, "")])
def test_a_file_may_have_placeholders_in_it(tmp_path: Path, content: bytes, fault: str) -> None:
    """It is read only if it matters."""
    path = tmp_path / "body.bin"
    path.write_bytes(content)
    assert find(Spec(body=FILE), 100, 100_000, path) == fault
    assert find(Spec(body=FILE), 10, 100_000) == ""


def test_each_target_has_its_share_of_what_is_in_flight() -> None:
    """A large body that is rare takes little."""
    large, small = Target(name="a", url="/", body="{i}" + "x" * 1000), Target(name="b", url="/", weight=9)
    assert find(Spec(targets=(large, small)), 100, 100_000) == ""
    assert "1,000 in flight per worker" in find(Spec(targets=(large, small)), 1000, 100_000)
