from pathlib import Path

import pytest
from tests.kit.runs.scanned import keep_data

from oku_coordinator.runs.run_documents import read_run_rows
from oku_core.errors import UserError
from oku_core.results.run_api import MOST_ROWS
from oku_core.spec.spec import Spec

CONTENT = "a,b\n" + "".join(f"{row},x{row}\n" for row in range(5000))


def test_rows_of_indices_are_read(tmp_path: Path) -> None:
    """Those that are asked for, by their columns."""
    files = tmp_path / "files"
    spec = Spec(requests=5000, data=keep_data(tmp_path, CONTENT, files))
    found = read_run_rows("r1", spec, files.joinpath, range(4711, 4713))
    assert (found.run, found.start) == ("r1", 4711)
    assert found.rows == [{"a": "4711", "b": "x4711"}, {"a": "4712", "b": "x4712"}]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (range(3, 3), "are not a range of the 5,000 indices of run r1"),
        (range(4999, 5001), "start 4999 and stop 5001 are not a range"),
        (range(MOST_ROWS + 1), "1,001 rows were requested; one response has at most 1,000"),
    ],
)
def test_what_cannot_be_had_is_refused(tmp_path: Path, wanted: range, said: str) -> None:
    """In one line."""
    files = tmp_path / "files"
    spec = Spec(requests=5000, data=keep_data(tmp_path, CONTENT, files))
    with pytest.raises(UserError, match=said):
        read_run_rows("r1", spec, files.joinpath, wanted)


def test_a_run_without_data_and_one_whose_data_is_gone_say_so(tmp_path: Path) -> None:
    """The data is named as the user named it."""
    spec = Spec(requests=5000, data=keep_data(tmp_path, CONTENT, tmp_path / "files"))
    with pytest.raises(UserError, match="run r1 has no data"):
        read_run_rows("r1", Spec(), tmp_path.joinpath, range(1))
    with pytest.raises(UserError, match=r"data rows\.csv cannot be used: data cannot be read: No such file"):
        read_run_rows("r1", spec, tmp_path.joinpath, range(1))
