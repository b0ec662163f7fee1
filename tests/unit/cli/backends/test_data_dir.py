import threading
from functools import partial
from pathlib import Path

import msgspec
import pytest

from oku_cli.backends.coordinator_ref import Endpoint
from oku_cli.backends.data_dir import DEFAULT, DataDir, RunningStack, StackShape
from oku_core.errors import UserError

ENDPOINT = Endpoint("http://127.0.0.1:1", "token")
SHAPE = StackShape("digest", servers=2, delay="20ms", seed=7, spreads_addresses=False)
STACK = RunningStack(ENDPOINT.url, ENDPOINT.token, 4711, {"broker": 7}, SHAPE)


def test_a_command_names_the_folder_when_it_is_not_the_usual() -> None:
    """The command can be typed as it stands."""
    assert DataDir(DEFAULT).flags == []
    assert DataDir(DEFAULT / "x").flags == ["--data-dir", ".oku/x"]


def test_the_stack_of_a_folder_can_be_found_until_it_has_left(tmp_path: Path) -> None:
    """Its address can be read while it runs, and only then; its token is readable by its owner alone."""
    folder = DataDir(tmp_path)
    assert folder.find_endpoint() is None
    folder.hold()
    with pytest.raises(UserError, match="is being started or ended"):
        folder.find_endpoint(patience_s=0)
    folder.write_stack(STACK)
    found = DataDir(tmp_path).find_endpoint()
    assert found == ENDPOINT
    assert found.flags == ["--data-dir", str(tmp_path)]
    assert folder.stack_file.stat().st_mode & 0o777 == 0o600
    folder.release()
    assert DataDir(tmp_path).find_endpoint() is None
    # A stack has left its folder when it has ended or another runs there.
    folder, other = DataDir(tmp_path), Endpoint("http://127.0.0.1:2", "token")
    other_stack = msgspec.structs.replace(STACK, url=other.url)
    folder.hold()
    folder.write_stack(STACK)
    assert not DataDir(tmp_path).is_left_by(ENDPOINT)
    folder.write_stack(other_stack)
    assert DataDir(tmp_path).is_left_by(ENDPOINT)
    assert not DataDir(tmp_path).is_left_by(other)
    folder.release()
    folder.write_stack(other_stack)
    assert DataDir(tmp_path).is_left_by(other)


@pytest.mark.parametrize("is_ended", [False, True])
def test_who_asks_while_a_stack_starts_or_ends_waits_for_it(tmp_path: Path, is_ended: bool) -> None:  # noqa: FBT001
    """The folder is held then, and nothing is known of a stack; a moment later it is."""
    folder = DataDir(tmp_path)
    folder.hold()
    settle = folder.release if is_ended else partial(folder.write_stack, STACK)
    timer = threading.Timer(0.2, settle)
    timer.start()

    assert DataDir(tmp_path).find_endpoint() == (None if is_ended else ENDPOINT)

    timer.join()
    if not is_ended:
        folder.release()


def test_one_stack_at_a_time_holds_a_folder(tmp_path: Path) -> None:
    """The second is refused until the first has released it; a folder that cannot be made is one line."""
    first, second = DataDir(tmp_path), DataDir(tmp_path)
    first.hold()
    with pytest.raises(UserError, match="another run holds this data folder"):
        second.hold()
    first.release()
    second.hold()
    second.release()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file/data: Not a directory"):
        DataDir(tmp_path / "file" / "data").hold()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"url": 1}', b"[" * 100_000, b"\xff"])
def test_a_damaged_file_of_a_stack_is_one_line(tmp_path: Path, content: bytes) -> None:
    """It names the file."""
    folder = DataDir(tmp_path)
    folder.hold()
    folder.write_stack(STACK)
    folder.stack_file.write_bytes(content)
    with pytest.raises(UserError, match="was not written by Oku: "):
        DataDir(tmp_path).find_endpoint()


def test_a_stack_keeps_its_key(tmp_path: Path) -> None:
    """Only its user can read it; one that was cut short, or chosen, is refused before anything is started."""
    folder = DataDir(tmp_path)
    key = folder.keep_message_key()
    assert folder.keep_message_key() == key
    assert (folder.message_key.read_text(), len(key)) == (key, 64)
    assert folder.message_key.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [folder.message_key]
    folder = DataDir(tmp_path)
    with folder.held():
        folder.keep_message_key()
        key = folder.message_key.read_text()
        folder.keep_message_key()
        assert folder.message_key.read_text() == key
        for weak, weakness in (("", "0 of at least 16 bytes"), ("a" * 64, "1 of at least 5 different bytes")):
            folder.message_key.write_text(weak)
            with pytest.raises(UserError, match=f"key: has {weakness}; delete it, and the next run makes"):
                folder.keep_message_key()


def test_a_stack_serves_runs_that_need_nothing_else() -> None:
    """Other delay servers, more of them, or other settings need another stack."""
    assert SHAPE.can_serve(SHAPE)
    for same in ({"servers": 0, "delay": "0s"}, {"servers": 1}):
        assert SHAPE.can_serve(msgspec.structs.replace(SHAPE, **same)), same
    for other in (
        {"servers": 3}, {"delay": "21ms"}, {"seed": 8}, {"spreads_addresses": True}, {"settings": "other"},
    ):  # fmt: skip
        assert not SHAPE.can_serve(msgspec.structs.replace(SHAPE, **other)), other
