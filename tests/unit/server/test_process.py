from pathlib import Path

import pytest

from oku_core.errors import UserError
from oku_server import process


def test_the_ready_file_has_the_address_in_one_line(tmp_path: Path) -> None:
    """The file replaces what was there, and nothing is left beside it."""
    path = tmp_path / "ready"
    path.write_text("10.0.0.1:1\n")
    process._write_ready_file(path, "127.0.0.1:8080")
    assert path.read_text() == "127.0.0.1:8080\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_ready_file_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    """A folder that is not there is the user's mistake."""
    path = tmp_path / "none" / "ready"
    with pytest.raises(UserError, match=rf"^--ready-file: {path} cannot be written: No such file"):
        process._write_ready_file(path, "127.0.0.1:8080")


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [((1024, 4096), (4096, 4096)), ((1024, -1), (1_048_576, -1)), ((1024, 2**30), (1_048_576, 2**30))],
)
def test_as_many_connections_as_permitted_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], wanted: tuple[int, int]
) -> None:
    """The soft limit of open files is raised to the hard one, within reason."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(process.resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(process.resource, "setrlimit", lambda _, limits: asked.append(limits))
    process._allow_connections()
    assert asked == [wanted]


@pytest.mark.parametrize("limits", [(4096, 4096), (2**30, 2**30), (-1, -1)])
def test_a_limit_that_suffices_stays(monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int]) -> None:
    """A limit is never lowered."""
    monkeypatch.setattr(process.resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(process.resource, "setrlimit", lambda *_: pytest.fail("lowered"))
    process._allow_connections()
