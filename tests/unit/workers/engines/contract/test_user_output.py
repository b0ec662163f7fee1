from pathlib import Path

import pytest

from oku_core.messaging.printed import LONGEST_PRINTED_LINE, MOST_PRINTED_LINES, Printed
from oku_workers.engines.contract.user_output import MOST_FILE_BYTES, UserOutput


def test_first_lines_are_for_the_screen_and_all_are_in_the_file(tmp_path: Path) -> None:
    """A run begins with none, and a new process of the worker goes on with the file of its run."""
    file = tmp_path / "printed" / "worker-1.txt"
    output = UserOutput(file)
    assert output.find("r1") is None
    texts = ["x" * 500, *(f"line {number}" for number in range(30))]
    for text in texts:
        output.record("r1", text)
    assert output.has_news
    shown = [text[:LONGEST_PRINTED_LINE] for text in texts[:MOST_PRINTED_LINES]]
    assert output.find("r1") == Printed(run="r1", lines=shown, count=31, file=str(file))
    assert not output.has_news
    UserOutput(file).record("r1", "of the next process")
    assert file.read_text().splitlines() == ["run r1", *texts, "of the next process"]
    assert file.stat().st_mode & 0o777 == 0o600
    output.record("r2", "other")
    assert output.find("r1") is None
    assert output.find("r2") == Printed(run="r2", lines=["other"], count=1, file=str(file))
    assert file.read_text() == "run r2\nother\n"


def test_a_file_has_a_limit_and_a_broken_one_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Lines are counted all the same; a link that user code left there is not followed."""
    file = tmp_path / "a.txt"
    output = UserOutput(file)
    for _ in range(12):
        output.record("r1", "x" * 1_000_000)
    found = output.find("r1")
    assert found is not None
    assert found.count == 12
    assert MOST_FILE_BYTES - 2_000_000 < file.stat().st_size <= MOST_FILE_BYTES
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "b.txt").symlink_to(tmp_path / "victim")
    output = UserOutput(tmp_path / "b.txt")
    output.record("r1", "one")
    assert output.find("r1") == Printed(run="r1", lines=["one"], count=1)
    assert (tmp_path / "victim").read_text() == "kept"
    assert "b.txt cannot be written" in caplog.text
