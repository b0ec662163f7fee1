from types import ModuleType
from typing import Any

import click
import pytest
from tests.unit.chart.rendering import CHART, find, find_pods, read_environment, render

from oku_cli.commands.run import command as run_command

BALANCED = {
    "state": "completed", "reason": "", "requests": 10, "accounted": 10, "resent_at_most": 3,
    "outcomes": {"ok": 9, "timeout": 1},
}  # fmt: skip


def test_the_pod_runs_the_script_of_the_chart() -> None:
    """The script in the pod is the same to the letter."""
    script = find(render(), "ConfigMap", "oku-test")["data"]["prove.py"]
    assert script.strip() == (CHART / "files" / "prove.py").read_text().strip()


@pytest.mark.parametrize(("scaling", "workers"), [(True, "2"), (False, None)])
def test_it_starts_a_run_that_oku_understands(
    prove: ModuleType, monkeypatch: pytest.MonkeyPatch, *, scaling: bool, workers: str | None
) -> None:
    """The run has as many workers as were asked for, or as many as there are."""
    pod = find_pods(render({"scaling": {"enabled": scaling}}))["test"]
    for name, value in read_environment(pod).items():
        if isinstance(value, str):
            monkeypatch.setenv(name, value)
    first, second, *arguments = prove.build_command("t")
    assert [first, second] == ["oku", "run"]
    given, _, _ = run_command.make_parser(click.Context(run_command)).parse_args(arguments)
    assert given["requests"] == "200000"
    assert given.get("workers") == workers


def test_it_says_what_is_wrong_with_an_account(prove: ModuleType) -> None:
    """The script finds the fault whatever `oku run` thinks of the account."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, ""),
        ({"state": "failed", "reason": "no engine"}, "the run is failed: no engine"),
        ({"accounted": 9}, "9 of 10 requests are accounted"),
        ({"outcomes": {"ok": 9}}, "the outcomes do not sum to 10: {'ok': 9}"),
        (
            {"outcomes": {"ok": 8, "connect_error": 2}},
            "8 of 10 requests are ok: {'ok': 8, 'connect_error': 2}",
        ),
    ]
    for change, said in cases:
        assert prove.find_wrong(BALANCED | change, 0.9) == said
    # A run without one good answer proves nothing.
    failed = BALANCED | {"outcomes": {"ok": 0, "connect_error": 10}}
    assert prove.find_wrong(failed, 0.0).startswith("0 of 10 requests are ok")


@pytest.mark.parametrize(("arguments", "share"), [([], "0.99"), (["--error-rate", "0.5"], "0")])
def test_nearly_all_have_to_be_ok_unless_servers_were_told_otherwise(
    arguments: list[str], share: str
) -> None:
    """The death of a worker spoils no answer."""
    pod = find_pods(render({"servers": {"extraArgs": arguments}}))["test"]
    assert read_environment(pod)["TEST_LEAST_OK"] == share


@pytest.mark.parametrize("component", ["workers", "servers"])
def test_it_looks_at_the_pods_of_the_release(component: str) -> None:
    """The script selects them by their labels."""
    pods = find_pods(render(release="night"))
    text = read_environment(pods["test"])[f"TEST_{component[:-1].upper()}_LABELS"]
    labels = dict(each.split("=") for each in text.split(","))
    having = {name for name, pod in pods.items() if labels.items() <= pod["metadata"]["labels"].items()}
    assert having == {component}
