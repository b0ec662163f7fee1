import hashlib
from pathlib import Path

import pytest

from oku_cli.local import valkey
from oku_cli.local.valkey import COORDINATOR, USERS_FILE, WORKERS, build_users
from oku_core.broker.celery_app import build_app
from oku_core.errors import UserError


def test_the_socket_lies_in_the_brokers_folder_if_its_path_is_short(tmp_path: Path) -> None:
    """The user does not have to look for it."""
    folder = Path("/short")
    assert valkey.choose_socket(folder) == folder / "valkey.sock"
    # A path too long for a socket is avoided.
    folder = tmp_path / ("long" * 30)
    socket = valkey.choose_socket(folder)
    assert len(str(socket)) <= 100
    assert socket.parent.is_dir()
    valkey.remove_socket(socket, folder)
    assert not socket.parent.exists()
    # The brokers own folder is never removed. It contains the broker's data.
    valkey.remove_socket(tmp_path / "valkey.sock", tmp_path)
    assert tmp_path.is_dir()


def test_the_broker_knows_digests_of_passwords_and_rights(tmp_path: Path) -> None:
    """Of both users, and nobody else may connect; what is in its memory opens nothing."""
    passwords = {COORDINATOR: "one", WORKERS: "two"}
    lines = build_users(passwords).splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["user", "default", "off"], ["user", "coordinator", "on"], ["user", "workers", "on"],
    ]  # fmt: skip
    assert [line.split()[3] for line in lines[1:]] == [
        f"#{hashlib.sha256(password.encode()).hexdigest()}" for password in passwords.values()
    ]
    # The rights are those of the file. The chart has the same.
    given = [line.split()[4:] for line in build_users({COORDINATOR: "one", WORKERS: "two"}).splitlines()]
    assert given == [line.split()[4:] for line in USERS_FILE.read_text().splitlines()]
    # Nobody else can open the broker.
    assert valkey.build_command("valkey-server") == ["valkey-server", "-"]
    config = valkey.build_config(tmp_path, tmp_path / "s").splitlines()
    assert {"port 0", "unixsocketperm 700", "appendonly yes"} <= {*config}


def test_the_systems_server_comes_before_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Redis comes last: it may be too old to know the rights of users."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "redis-server").touch(mode=0o755)
    packed = valkey.find_server()
    assert packed.endswith("valkey-server")
    (tmp_path / "valkey-server").touch(mode=0o755)
    assert valkey.find_server() == str(tmp_path / "valkey-server") != packed
    (tmp_path / "valkey-server").unlink()
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(()))
    assert valkey.find_server() == str(tmp_path / "redis-server")


def test_no_server_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(()))

    with pytest.raises(UserError, match="install valkey-server, or redis-server 7"):
        valkey.find_server()


def test_kombu_reads_the_path_of_the_socket_out_of_its_url() -> None:
    """Whatever a folder is called: Jenkins makes job@2 and feature%2Fx."""
    names = ("job@2", "feature%2Fx", "c#", "what?", "a b", "a;b&c", "it's", 'q"', "b\\", "ü💥", "[::1]", "\n")
    for name in (*names, "".join(names)):
        socket = Path("/", name, "valkey.sock")
        with build_app(valkey.build_broker_url(socket), b"k" * 32).connection_for_write() as connection:
            assert connection.as_uri() == f"redis+socket://{socket}"
            assert connection.alt == []


def test_a_folder_that_no_url_can_hold_does_not_have_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a temporary folder with such a name, or one that is too long, if there is another."""
    for name in ("\udcff", "x" * 120):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
        socket = valkey.choose_socket(tmp_path / name)

        assert socket.parent.is_dir()
        assert not socket.is_relative_to(tmp_path)
        valkey.remove_socket(socket, tmp_path / name)
        assert not socket.parent.exists()


def test_in_a_locale_of_its_own_a_name_is_what_the_file_system_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name in Latin-1 does not do: kombu takes what it decodes for UTF-8."""
    monkeypatch.setattr("os.fsencode", lambda path: str(path).encode("latin-1"))
    socket = valkey.choose_socket(Path("/ü"))

    assert socket.parent != Path("/ü")
    valkey.remove_socket(socket, Path("/ü"))
    assert valkey.choose_socket(Path("/u")) == Path("/u/valkey.sock")
    assert valkey.build_broker_url(Path("/Ã¼/s")) == "redis+socket:///%C3%BC/s"


def test_without_any_folder_for_the_socket_the_user_hears_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one line, with the option and the variable that help."""

    def refuse(**_: object) -> str:
        raise PermissionError

    monkeypatch.setattr("tempfile.mkdtemp", refuse)

    with pytest.raises(UserError, match="is UTF-8 of at most 89 bytes: choose one with --data-dir or TMPDIR"):
        valkey.choose_socket(tmp_path / ("x" * 120))
