from pathlib import Path

import pytest
from click.testing import CliRunner

from oku_cli.commands import server
from oku_core.errors import UserError
from oku_server.behaviour.fault import FaultRates
from oku_server.settings import ServerSettings


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the logs of this process would be like; they stay as they are."""
    log: list[str] = []
    monkeypatch.setattr("oku_cli.process.logs.set_format", log.append)
    monkeypatch.setattr("oku_cli.process.logs.set_level", log.append)
    return log


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServerSettings]:
    """The settings of servers that were started."""
    settings: list[ServerSettings] = []
    monkeypatch.setattr("oku_server.process.serve", settings.append)
    return settings


def run(*arguments: str) -> None:
    """Run `oku server` and pass on what it raises."""
    CliRunner().invoke(server.command, arguments, catch_exceptions=False)


def test_without_flags_a_server_has_the_default_settings(served: list[ServerSettings]) -> None:
    """The flags have the defaults of `ServerSettings`."""
    run()
    (settings,) = served
    default = ServerSettings()
    for name in ("host", "port", "processes", "seed", "body", "faults", "counts_dir", "ready_file"):
        assert getattr(settings, name) == getattr(default, name)
    assert settings.delay == default.delay


def test_every_flag_has_its_place_in_the_settings(served: list[ServerSettings]) -> None:
    """Every setting of the user is kept."""
    run(
        *(
            "--host",
            "::",
            "--port",
            "0",
            "--processes",
            "2",
            "--delay",
            "0..3s",
            "--seed",
            "7",
            "--body",
            "9B",
        ),
        *("--error-rate", ".1", "--reset-rate", ".2", "--stall-rate", ".3", "--truncate-rate", ".4"),
        *("--counts-dir", "counts", "--ready-file", "ready"),
    )
    (settings,) = served
    assert (settings.host, settings.port, settings.processes) == ("::", 0, 2)
    assert (settings.delay, settings.seed, len(settings.body)) == ("0..3s", 7, 9)
    assert settings.faults == FaultRates(error=0.1, reset=0.2, stall=0.3, truncate=0.4)
    assert (settings.counts_dir, settings.ready_file) == (Path("counts"), Path("ready"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--error-rate", "1.5"], "--error-rate: 1.5 is not between 0 and 1"),
        (["--stall-rate", "x"], "--stall-rate: x is not a fraction between 0 and 1, such as 0.01"),
        (["--port", "70000"], "--port: 70000 is not between 0 and 65535"),
        (["--processes", "0"], "--processes: 0 is not between 1 and 1024"),
        (["--seed", "1.5"], "--seed: 1.5 is not a whole number"),
        (
            ["--delay", "soon"],
            "--delay: soon is not a delay such as 20ms, 0..3s, 5ms..80ms, exp:50ms or lognormal:40ms,0.5",
        ),
        (["--body", "@/none"], "--body: /none cannot be read: No such file or directory"),
        (["--truncate-rate", "1", "--body", ""], "--truncate-rate: an empty body cannot be truncated"),
        (
            ["--error-rate", "0.6", "--reset-rate", "0.6"],
            (
                "--error-rate, --reset-rate, --stall-rate, --truncate-rate: "
                "the rates of all faults sum to 1.2, which is not at most 1"
            ),
        ),
    ],
)
def test_a_wrong_flag_is_answered_with_one_line(
    served: list[ServerSettings], arguments: list[str], message: str
) -> None:
    """The line names the flag, the value and what is allowed, and no server is started."""
    with pytest.raises(UserError) as caught:
        run(*arguments)
    assert str(caught.value) == message
    assert not served
