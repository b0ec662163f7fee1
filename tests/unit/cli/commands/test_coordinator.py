import pytest
from click.testing import CliRunner

from oku_cli.commands.coordinator import command
from oku_coordinator.settings import CoordinatorSettings
from oku_core.errors import UserError


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[CoordinatorSettings]:
    """The settings of coordinators that were started; the logs of this process stay as they are."""
    settings: list[CoordinatorSettings] = []
    monkeypatch.setattr("oku_cli.process.logs.set_format", lambda _: None)
    monkeypatch.setattr("oku_cli.process.logs.set_level", lambda _: None)
    monkeypatch.setattr("oku_coordinator.process.serve", settings.append)
    return settings


def run(*arguments: str, token: str | None = "t") -> None:
    """Run `oku coordinator` with OKU_TOKEN and pass on what it raises."""
    runner = CliRunner(env={"OKU_TOKEN": token, "OKU_MESSAGE_KEY": "a key of sixteen bytes or more"})
    runner.invoke(command, ["--broker-url", "redis://h", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--worker-timeout", "soon", "--worker-timeout: soon is not a duration"),
        ("--start-within", "25h", "--start-within: 25h is not between 1s and 24h"),
    ],
)
def test_what_cannot_be_read_is_answered_with_one_line(
    served: list[CoordinatorSettings], flag: str, value: str, message: str
) -> None:
    """No coordinator is started."""
    with pytest.raises(UserError, match=f"^{message}"):
        run(flag, value)
    assert not served


def test_a_token_comes_without_what_stands_around_it(served: list[CoordinatorSettings]) -> None:
    """A Secret that was made of a file has a line break, which no client can send."""
    run(token=" t\r\n")
    run("--token", " u\n")
    assert [settings.token for settings in served] == ["t", "u"]


def test_a_token_is_made_when_there_is_none(
    served: list[CoordinatorSettings], caplog: pytest.LogCaptureFixture
) -> None:
    """Each start makes a new one, and the log shows it."""
    run(token=None)
    run(token=None)
    first, second = (settings.token for settings in served)
    assert first != second
    assert len(first) == 32
    assert first in caplog.text


@pytest.mark.parametrize("token", ["", " \n", "two words", "schlüssel"])
@pytest.mark.parametrize("is_flag", [True, False])
def test_a_token_that_nobody_could_send_is_refused(
    served: list[CoordinatorSettings], token: str, *, is_flag: bool
) -> None:
    """An empty token does not count as absent either: a Secret may lack what it should hold."""
    with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): "):
        run(*(("--token", token) if is_flag else ()), token="t" if is_flag else token)
    assert not served


def test_a_run_waits_longer_for_pods_than_for_processes(served: list[CoordinatorSettings]) -> None:
    """What is said holds everywhere."""
    kube = ("--kube-workers", "w", "--kube-namespace", "n")
    for flags in ((), kube, ("--start-within", "90s"), (*kube, "--start-within", "90s")):
        run(*flags)
    assert [settings.start_within_s for settings in served] == [10.0, 60.0, 90.0, 90.0]
