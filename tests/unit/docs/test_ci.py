"""`.ci/run`, and the workflow that calls it on hosted runners."""

import itertools
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.kit.requirement import NOTES_VARIABLE, miss
from tests.kit.runs.local_run import wait_until

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / ".ci" / "run"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def list_stages() -> list[str]:
    """The stages, as `.ci/run` says them."""
    ended = subprocess.run([str(SCRIPT), "nonsense"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(".ci/run: nonsense is not one of test heavy pythons simulation")
    return ended.stderr.partition("is not one of ")[2].split()


def test_the_workflow_runs_every_stage_once() -> None:
    """Hosted runners run what `.ci/run` runs elsewhere."""
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    commands = "\n".join(step.get("run", "") for job in jobs for step in job["steps"])
    called = [
        stage for stages in re.findall(r"\.ci/run (.+)$", commands, re.MULTILINE) for stage in stages.split()
    ]
    assert sorted(called) == sorted(list_stages())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare clone: nothing lies beside it, and its `./task` only says what it was asked for.

    Its `.venv` has CPython 3.11.7, and so has the machine, but none else.
    """
    folder = tmp_path / "clone"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / ".ci" / "run")
    (folder / ".venv" / "bin").mkdir(parents=True)
    write_program(folder / "task", 'echo "$@"')
    write_python(folder / ".venv" / "bin" / "python", "3.11.7")
    (tmp_path / "bin").mkdir()
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 20))):
        write_program(tmp_path / "bin" / name, "exit 1")
    write_python(tmp_path / "bin" / "python3", "3.11.7")
    return folder


def write_program(path: Path, text: str) -> None:
    """Write a program of the shell."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def write_python(path: Path, version: str) -> None:
    """Write an interpreter that knows nothing but its version."""
    write_program(path, f'case "$*" in *python_version*) echo {version} ;; esac')


def run_ci(
    repository: Path, *stages: str, context: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run `.ci/run` in a repository."""
    hidden = ("OKU_TEST_CONTEXT", "OKU_CLUSTER", NOTES_VARIABLE)
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {
        "PATH": f"{repository.parent / 'bin'}:{environment['PATH']}",
        "PYENV_ROOT": str(repository.parent / "pyenv"),
        "OKU_PYTHON": "",
    }
    return subprocess.run(
        [str(repository / ".ci" / "run"), *stages],
        env={**environment, **variables, **({"OKU_TEST_CONTEXT": context} if context else {})},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_bare_clone_runs_all_but_the_cluster_and_says_so(repository: Path) -> None:
    """The reason is the last thing that one reads."""
    ended = run_ci(repository)
    assert ended.returncode == 0, ended.stderr
    called = [line for line in ended.stdout.split() if line != "setup:dev"]
    assert called[:3] == ["test", "test:heavy", "setup"]
    assert sorted(called[3:8]) == [
        "check", "dashboards:check", "prometheus:check", "test:fuzz", "test:simulation",
    ]  # fmt: skip
    assert called[8:] == ["test:integration:shared", "test:integration:alone", "test:chaos"]
    assert ended.stderr.splitlines()[-1] == (
        "ci: skipped 1 x: there is no cluster to test in: OKU_TEST_CONTEXT names no kube context"
    )


def test_with_a_context_nothing_is_skipped(repository: Path) -> None:
    """The cluster that it names is used."""
    ended = run_ci(repository, context="kind-oku")
    assert ended.returncode == 0, ended.stderr
    assert "test:cluster" in ended.stdout.split()
    assert "skipped" not in ended.stderr


def test_a_variable_names_the_program_that_starts_a_cluster(repository: Path) -> None:
    """It takes away an old cluster first; without a cluster nothing else runs."""
    program = repository.parent / "start-cluster"
    write_program(program, 'echo "called with $*" >&2; exit 3')
    ended = run_ci(repository, OKU_CLUSTER=str(program))
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", "called with down\n")


def test_a_stage_that_is_named_is_not_skipped(repository: Path) -> None:
    """Without a cluster, the one that needs it fails before anything runs."""
    ended = run_ci(repository, "test", "cluster")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == "ci: there is no cluster to test in: OKU_TEST_CONTEXT names no kube context\n"


def test_after_a_row_in_which_a_stage_fails_nothing_runs(repository: Path) -> None:
    """The rest of its lane is left out; the lane beside it still ends, and its output is shown."""
    write_program(
        repository / "task",
        'test "$1" != check || exit 3; test "$1" != test:simulation || sleep 0.5; echo "$@"',
    )
    ended = run_ci(repository, "test", "check", "simulation", "fuzz", "chaos")
    assert ended.returncode == 1
    assert ended.stdout.split() == ["test", "setup:dev", "test:simulation"]
    lines = re.sub(r"after \d+ s", "after", ended.stderr).splitlines()
    assert lines[-4:] == [
        "ci: check",
        "ci: check failed after",
        "ci: simulation",
        "ci: simulation passed after",
    ]


def test_the_output_of_a_stage_is_shown_whole(repository: Path) -> None:
    """Stages that run side by side do not mix their lines, and overlap in time."""
    begun = '{ test "$1" = test:simulation && touch one && other=two || { touch two; other=one; }; }'
    talk = f'{begun}; for i in 1 2 3; do echo "$1"; sleep 0.1; done; test -e $other'
    write_program(repository / "task", f'test "$1" = setup:dev || {{ {talk}; }}')
    ended = run_ci(repository, "simulation", "check")
    assert ended.returncode == 0, ended.stderr
    told = ended.stdout.split()
    assert sorted(told) == ["check"] * 3 + ["test:simulation"] * 3
    assert sum(before != after for before, after in itertools.pairwise(told)) == 1


def test_an_interrupt_reaches_the_stages_that_run_side_by_side(repository: Path) -> None:
    """None of them goes on behind its back."""
    talk = "trap 'echo $1 >> interrupted; exit 1' INT; touch $1.begun; while :; do sleep 0.05; done"
    write_program(repository / "task", f'test "$1" = setup:dev || {{ {talk}; }}')
    command = [str(repository / ".ci" / "run"), "simulation", "fuzz"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        wait_until(lambda: len(list(repository.glob("*.begun"))) == 2, 20, "both stages run")
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == 143
    assert sorted((repository / "interrupted").read_text().split()) == ["test:fuzz", "test:simulation"]


def test_the_only_python_is_tested_once(repository: Path) -> None:
    """The stage of the unit tests has had it: CI takes no longer where there is no other."""
    ended = run_ci(repository, "pythons")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["setup"]
    assert ended.stderr.splitlines()[1:3] == [
        "ci: .venv has CPython 3.11.7; this machine has 3.11.7",
        "ci: CPython 3.11.7: the stage test covers it",
    ]


def test_the_newest_python_is_tested_in_a_copy(repository: Path) -> None:
    """One in between is not, nor one that is not to be used; what fails there fails."""
    bin_folder, pyenv = repository.parent / "bin", repository.parent / "pyenv" / "versions"
    write_python(bin_folder / "python3.12", "3.12.1")
    newest = pyenv / "3.13.0" / "bin" / "python3"
    newest.parent.mkdir(parents=True)
    write_python(newest, "3.13.0")
    write_program(repository / "task", 'echo "$OKU_PYTHON $(pwd -P) $*" >> "$LOG"')
    (repository / "new.txt").write_text("not committed")
    write_program(bin_folder / "git", "find . -type f -printf '%P\\0'")

    log = repository.parent / "log"
    ended = run_ci(repository, "pythons", LOG=str(log))

    assert ended.returncode == 0, ended.stderr
    asked = [line.split() for line in log.read_text().splitlines()]
    assert [(python, *words[:1]) for python, _, *words in asked[1:]] == [
        (str(newest), "test"), (str(newest), "oku"),
    ]  # fmt: skip
    folders = {Path(folder) for _, folder, *_ in asked[1:]}
    assert repository not in folders
    assert not any(folder.exists() for folder in folders)
    write_program(repository / "task", 'test "$1" != test')
    assert run_ci(repository, "pythons").returncode == 1


def test_what_is_missing_is_skipped_on_a_laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Helm can run the other tests."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(NOTES_VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="there is no helm"):
        miss("there is no helm")


def test_what_is_missing_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be missing there."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv(NOTES_VARIABLE, raising=False)
    with pytest.raises(pytest.fail.Exception, match="there is no helm"):
        miss("there is no helm")


def test_ci_notes_what_it_may_skip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says so when all is over."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv(NOTES_VARIABLE, str(tmp_path / "notes"))
    with pytest.raises(pytest.skip.Exception, match="there is no helm"):
        miss("there is no helm")
    assert (tmp_path / "notes").read_text() == "there is no helm\n"
