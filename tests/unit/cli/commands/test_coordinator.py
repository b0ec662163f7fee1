import pytest
from click.testing import CliRunner

from oku_cli.commands.coordinator import command
from oku_coordinator.settings import CoordinatorSettings, RetentionRule
from oku_core.errors import UserError


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[CoordinatorSettings]:
    """The settings of coordinators that were started; the logs of this process stay as they are."""
    settings: list[CoordinatorSettings] = []
    monkeypatch.setattr("oku_cli.process.logs.set_format", lambda _: None)
    monkeypatch.setattr("oku_cli.process.logs.set_level", lambda _: None)
    monkeypatch.setattr("oku_coordinator.process.serve_runs", settings.append)
    return settings


TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"


def run(*arguments: str, token: str | None = TOKEN) -> None:
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


def test_runs_and_keys_are_kept_as_its_flags_say(served: list[CoordinatorSettings]) -> None:
    """By default runs are kept for ever, and keys for 30 days after their deletion."""
    run()
    run("--keep-runs", "5", "--keep-for", "2h", "--keep-keys", "7d")
    day_s = 86_400.0
    rules = [RetentionRule(None, None, 30 * day_s), RetentionRule(5, 7200.0, 7 * day_s)]
    assert [settings.retention for settings in served] == rules


def test_a_token_comes_without_what_stands_around_it(served: list[CoordinatorSettings]) -> None:
    """A Secret that was made of a file has a line break, which no client can send."""
    run(token=f" {TOKEN}\r\n")
    run("--token", f" {OTHER}\n")
    assert [settings.token for settings in served] == [TOKEN, OTHER]


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
        run(*(("--token", token) if is_flag else ()), token=TOKEN if is_flag else token)
    assert not served


@pytest.mark.parametrize("is_flag", [True, False])
def test_a_token_that_is_easy_to_guess_is_refused(
    served: list[CoordinatorSettings], *, is_flag: bool
) -> None:
    """The line says what is allowed and how to make one, and does not show the token."""
    weak = {
        "x": "has 1 of at least 16 characters",
        "0123456789abcde": "has 15 of at least 16 characters",
        " 0123456789abcde\n": "has 15 of at least 16 characters",
        "x" * 40: "has 1 of at least 5 different characters",
        "abcd" * 8: "has 4 of at least 5 different characters",
    }
    for token, weakness in weak.items():
        with pytest.raises(UserError) as caught:
            run(*(("--token", token) if is_flag else ()), token=TOKEN if is_flag else token)
        hint = "make one: export OKU_TOKEN=$(openssl rand -hex 32)"
        assert str(caught.value) == f"--token (OKU_TOKEN): {weakness}; {hint}"
    assert not served


def test_a_run_waits_longer_for_pods_than_for_processes(served: list[CoordinatorSettings]) -> None:
    """What is said holds everywhere."""
    kube = ("--kube-workers", "w", "--kube-namespace", "n")
    for flags in ((), kube, ("--start-within", "90s"), (*kube, "--start-within", "90s")):
        run(*flags)
    assert [settings.start_within_s for settings in served] == [10.0, 60.0, 90.0, 90.0]
