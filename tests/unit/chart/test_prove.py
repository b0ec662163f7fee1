import importlib.util
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


@pytest.fixture(scope="module")
def prove() -> ModuleType:
    """The script that the test's pod runs."""
    spec = importlib.util.spec_from_file_location("prove", CHART / "files" / "prove.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pod_runs_the_script_of_the_chart() -> None:
    """To the letter."""
    script = find(render(), "ConfigMap", "oku-test")["data"]["prove.py"]
    assert script.strip() == (CHART / "files" / "prove.py").read_text().strip()


@pytest.mark.parametrize(("scaling", "workers"), [(True, "2"), (False, None)])
def test_it_starts_a_run_that_oku_understands(
    prove: ModuleType, monkeypatch: pytest.MonkeyPatch, *, scaling: bool, workers: str | None
) -> None:
    """With as many workers as it is told, or those that there are."""
    pod = find_pods(render({"scaling": {"enabled": scaling}}))["test"]
    for name, value in read_environment(pod).items():
        if isinstance(value, str):
            monkeypatch.setenv(name, value)
    first, second, *arguments = prove.build_command("t")
    assert [first, second] == ["oku", "run"]
    given, _, _ = run_command.make_parser(click.Context(run_command)).parse_args(arguments)
    assert given["requests"] == "200000"
    assert given.get("workers") == workers


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"state": "failed", "reason": "no engine"}, "the run is failed: no engine"),
        ({"accounted": 9}, "9 of 10 requests are accounted"),
        ({"outcomes": {"ok": 9}}, "the outcomes do not sum to 10: {'ok': 9}"),
    ],
)
def test_it_says_what_is_wrong_with_an_account(prove: ModuleType, change: dict[str, Any], said: str) -> None:
    """Whatever `oku run` thinks of it."""
    assert prove.find_wrong(BALANCED | change) == said
