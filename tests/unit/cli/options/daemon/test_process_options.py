import os
import socket
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from oku_cli.commands.coordinator import command as coordinator
from oku_cli.commands.worker import command as worker
from oku_cli.options.daemon.process_options import variables_option
from oku_cli.process.secret_variables import SECRET
from oku_core.errors import UserError

if TYPE_CHECKING:
    from oku_coordinator.settings import CoordinatorSettings
    from oku_workers.settings import WorkerSettings

KEY = "a key of sixteen bytes or more"
TOKEN = "token-0123456789"
GIVEN = {"OKU_BROKER_URL": "redis://:pw@h", "OKU_MESSAGE_KEY": KEY, "OKU_TOKEN": TOKEN}


@pytest.fixture(autouse=True)
def _no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of this process stay as they are, and its environment has no secret before or after."""
    monkeypatch.setattr("oku_cli.process.logs.set_format", lambda _: None)
    monkeypatch.setattr("oku_cli.process.logs.set_level", lambda _: None)
    for name in SECRET:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def invoke(command: click.Command, variables: dict[str, str], *flags: str) -> None:
    """Run a command that is handed these variables."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall("\0".join(f"{name}={value}" for name, value in variables.items()).encode())
        ours.shutdown(socket.SHUT_WR)
        flags = (*flags, "--variables-fd", str(theirs.detach()))
        CliRunner().invoke(command, flags, catch_exceptions=False)


def test_a_coordinator_takes_its_secrets_from_the_socket_and_forgets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever the flag is; what it starts does not inherit them."""
    served: list[CoordinatorSettings] = []
    monkeypatch.setattr("oku_coordinator.process.serve_runs", served.append)
    invoke(coordinator, GIVEN, "--port", "0")
    [settings] = served
    assert (settings.broker_url, settings.token) == ("redis://:pw@h", TOKEN)
    assert settings.message_key == KEY.encode()
    assert not set(SECRET) & set(os.environ)


def test_a_worker_does_the_same_and_keeps_what_is_not_of_oku(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec may name a variable that the user has allowed."""
    served: list[WorkerSettings] = []
    monkeypatch.setattr("oku_workers.process.serve", served.append)
    monkeypatch.setattr("oku_cli.commands.worker.add_context", lambda **_: None)
    monkeypatch.setenv("SHOP_TOKEN", "before")
    invoke(worker, GIVEN | {"SHOP_TOKEN": "s"})
    [settings] = served
    assert settings.broker_url == "redis://:pw@h"
    assert not set(SECRET) & set(os.environ)
    assert os.environ["SHOP_TOKEN"] == "s"


def test_a_shell_that_completes_takes_nothing() -> None:
    """The socket of a descriptor that it happens to have stays as it is."""

    @click.command()
    @variables_option
    def command() -> None:
        pass

    ours, theirs = socket.socketpair()
    with ours, theirs:
        command.make_context("c", ["--variables-fd", str(theirs.fileno())], resilient_parsing=True)
        ours.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_a_socket_that_brings_nothing_is_said() -> None:
    """In one line, without a traceback."""
    ours, theirs = socket.socketpair()
    ours.shutdown(socket.SHUT_WR)
    with ours, pytest.raises(UserError, match="--variables-fd: nothing was handed over"):
        CliRunner().invoke(worker, ["--variables-fd", str(theirs.detach())], catch_exceptions=False)
