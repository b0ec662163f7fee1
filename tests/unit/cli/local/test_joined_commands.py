import os
import subprocess
import sys
from pathlib import Path

import pytest

from oku_cli.local.joined_commands import JoinedCommand, JoinedCommands
from oku_core.errors import UserError

_JOIN = """
import pathlib, sys
from oku_cli.local.joined_commands import JoinedCommands
with JoinedCommands(pathlib.Path(sys.argv[1])).join(3) as member:
    member.write("r1")
    print("joined", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def joined(tmp_path: Path) -> JoinedCommands:
    """The joined commands of a folder."""
    return JoinedCommands(tmp_path / "joined")


def test_a_command_is_listed_from_when_it_joins_until_it_leaves(
    joined: JoinedCommands, tmp_path: Path
) -> None:
    """With its workers, and with its run once it has one."""
    assert joined.list_alive() == []
    with joined.join(2) as member:
        assert joined.list_alive() == [JoinedCommand(os.getpid(), 2)]
        member.write("r1")
        assert joined.list_alive() == [JoinedCommand(os.getpid(), 2, "r1")]
        assert joined.remove_dead() == []
    assert joined.list_alive() == []
    assert list((tmp_path / "joined").iterdir()) == []


def test_a_command_that_was_killed_is_found_once(joined: JoinedCommands, tmp_path: Path) -> None:
    """Its note stays behind, and is removed."""
    command = [sys.executable, "-c", _JOIN, str(tmp_path / "joined")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n"
        assert joined.list_alive() == [JoinedCommand(process.pid, 3, "r1")]
        process.kill()
    assert joined.list_alive() == []
    assert joined.remove_dead() == [JoinedCommand(process.pid, 3, "r1")]
    assert joined.remove_dead() == []
    assert list((tmp_path / "joined").iterdir()) == []


def test_a_note_that_cannot_be_read_is_not_counted(joined: JoinedCommands, tmp_path: Path) -> None:
    """A full disk may have cut it short."""
    (tmp_path / "joined").mkdir(mode=0o700)
    (tmp_path / "joined" / "1.json").write_text('{"process": ')
    assert joined.list_alive() == []


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """It names the place."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match="file/joined: Not a directory"),
        JoinedCommands(tmp_path / "file" / "joined").join(1),
    ):
        pass
