from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, read

from oku_cli.backends.coordinator_ref import CoordinatorRef, Endpoint
from oku_cli.backends.run_backend import RunPlace
from oku_cli.kube.kube_endpoint import KubeEndpoint
from oku_cli.main import oku
from oku_cli.options.run_options import RemoteOptions, place_options
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.spec import Spec

RUNS = {
    "261101-ab": ("nightly", RunState.CANCELLED),
    "261102-cd": ("nightly", RunState.PAUSED),
    "261103-ef": ("", RunState.PENDING),
    "261104-gh": ("two words", RunState.CANCELLED),
    "261105-ij": ("$(rm -r *)", RunState.CANCELLED),
    "261106-kl": ("--all", RunState.CANCELLED),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with runs in several states in its data folder."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / ".oku"
    data.mkdir(mode=0o700)
    ledger = open_ledger(data / "ledger.sqlite3")
    for now, (run, (name, state)) in enumerate(RUNS.items()):
        change(ledger, create_run, run, Spec(requests=5, name=name), float(now))
        if state is not RunState.PENDING:
            change(ledger, change_state, run, state, 10.0)
    ledger.close()
    return data


def complete(*arguments: str) -> list[CompletionItem[str]]:
    """What a shell offers for the last of these words."""
    return ShellComplete(oku, {}, "oku", "_OKU_COMPLETE").get_completions([*arguments[:-1]], arguments[-1])


def list_words(*arguments: str) -> list[str]:
    """Those words alone."""
    return [str(item.value) for item in complete(*arguments)]


def test_runs_are_offered_by_latest_id_and_name() -> None:
    """The newest first. A name that a shell would take for more than a word is not offered."""
    assert list_words("show", "") == ["latest", *sorted(RUNS, reverse=True), "nightly"]
    assert list_words("show", "l") == ["latest"]
    assert list_words("report", "n") == ["nightly"]
    assert list_words("show", "26110") == sorted(RUNS, reverse=True)
    assert list_words("rm", "261101-ab", "n") == ["nightly"]
    # A run is described. By its state and its name; a word that stands for it also by its id.
    described = {str(item.value): item.help for item in complete("show", "")}
    assert described["261102-cd"] == "paused - nightly"
    assert described["261103-ef"] == "pending"
    assert described["nightly"] == "261102-cd - paused"
    assert described["latest"] == "261106-kl - cancelled - --all"
    # A part of one id becomes the id.
    assert list_words("show", "-cd") == []
    assert list_words("show", "cd") == ["261102-cd"]
    assert list_words("show", "02") == ["261102-cd"]
    assert list_words("show", "110") == []
    assert list_words("show", "words") == []
    assert list_words("show", "gh") == ["261104-gh"], "although a name has it, too"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("pause", ["261103-ef"]),
        ("resume", ["261102-cd", "nightly"]),
        ("cancel", ["261103-ef", "261102-cd", "nightly"]),
        ("rm", ["latest", "261106-kl", "261105-ij", "261104-gh", "261102-cd", "261101-ab", "nightly"]),
    ],
)
def test_a_command_is_offered_the_runs_that_it_can_take(command: str, words: list[str]) -> None:
    """The latest run only if it is one of them."""
    assert list_words(command, "") == words


@pytest.mark.parametrize(
    "flags",
    [
        ("--data-dir", "nowhere"),
        ("--data-dir", "file"),
        ("--coordinator", "http://127.0.0.1:1", "--token", "t"),
        ("--coordinator", "http://127.0.0.1:1"),
        ("--coordinator", "nonsense", "--token", "t"),
        ("--kube",),
        ("--kube", "--coordinator", "http://127.0.0.1:1"),
    ],
)
def test_what_does_not_answer_has_nothing_to_offer(
    flags: tuple[str, ...], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is said, and nothing is made."""
    (folder.parent / "file").write_text("")
    before = sorted(folder.parent.rglob("*"))
    assert list_words("show", *flags, "") == []
    assert capfd.readouterr() == ("", "")
    assert sorted(folder.parent.rglob("*")) == before


def test_a_ledger_that_cannot_be_read_has_nothing_to_offer(folder: Path) -> None:
    """It may be of another version, or no ledger."""
    (folder / "ledger.sqlite3").write_bytes(b"no ledger" * 100)
    assert list_words("show", "") == []


def test_a_killed_run_stays_as_it_is(folder: Path) -> None:
    """Commands pause it when they look; a word that is completed changes nothing."""
    ledger = Ledger(folder / "ledger.sqlite3")
    change(ledger, change_state, "261103-ef", RunState.RUNNING, 11.0)
    ledger.close()
    assert list_words("pause", "") == ["261103-ef"]
    ledger = Ledger(folder / "ledger.sqlite3", read_only=True)
    assert read(ledger, fetch_run, "261103-ef").state is RunState.RUNNING
    ledger.close()


def test_a_coordinator_is_named_once() -> None:
    """The error asks for each by name."""
    assert RemoteOptions().build_ref() is None
    ref = RemoteOptions(coordinator="http://h:1/", token="t").build_ref()
    assert ref == Endpoint("http://h:1", "t")
    assert ref.flags == ["--coordinator", "http://h:1"]
    with pytest.raises(UserError, match="--token: "):
        RemoteOptions(coordinator="http://h:1").build_ref()
    with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): is empty"):
        RemoteOptions(coordinator="http://h:1", token="").build_ref()
    with pytest.raises(UserError, match="--coordinator: h:1 is not a URL"):
        RemoteOptions(coordinator="h:1", token="t").build_ref()
    for url in ("http://h:1/?a=b", "http://h:1/#a"):
        with pytest.raises(UserError, match=r"--coordinator: the URL has a \? or a #"):
            RemoteOptions(coordinator=url, token="t").build_ref()
    # A coordinator in a cluster is named by context namespace and release.
    assert RemoteOptions(kube=True).build_ref() == KubeEndpoint()
    given = RemoteOptions(kube=True, context="c", namespace="n", release="r", token="t")
    assert given.build_ref() == KubeEndpoint("c", "n", "r", "t")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"kube": True, "coordinator": "http://h:1"}, "--kube: cannot be combined with --coordinator"),
        ({"namespace": "n"}, "--namespace: is allowed only with --kube"),
        ({"coordinator": "http://h:1", "token": "t", "release": "r"}, "--release: is allowed only with"),
        ({"context": "c"}, "--context: is allowed only with"),
    ]
    for options, message in cases:
        # What names a coordinator twice or not at all is refused. None of the flags is silently ignored.
        with pytest.raises(UserError, match=f"^{message}"):
            RemoteOptions(**options).build_ref()


def test_a_command_gets_the_coordinator_as_one() -> None:
    """It comes from flags or variables, and help shows each."""
    refs: list[CoordinatorRef | None] = []

    @click.command()
    @place_options
    def command(place: RunPlace) -> None:
        """Do something."""
        refs.append(place.coordinator)

    runner = CliRunner(env={"OKU_COORDINATOR": "", "OKU_TOKEN": "t"})
    for arguments in ([], ["--kube", "--release", "r"], ["--coordinator", "http://h:1"]):
        assert runner.invoke(command, arguments, standalone_mode=False).exception is None
    assert refs == [None, KubeEndpoint(release="r", token="t"), Endpoint("http://h:1", "t")]
    assert "--namespace NAME" in runner.invoke(command, ["--help"]).output


@pytest.mark.parametrize("given", [{"kube": True}, {"coordinator": "http://h:1"}])
def test_a_token_comes_without_what_stands_around_it(given: dict[str, Any]) -> None:
    """A variable read from a file ends in a line break; a token that no header can carry is refused."""
    ref = RemoteOptions(**given, token=" t\r\n").build_ref()
    assert isinstance(ref, KubeEndpoint | Endpoint)
    assert ref.token == "t"
    for token in ("", " ", "a b", "ä"):
        with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): "):
            RemoteOptions(**given, token=token).build_ref()
