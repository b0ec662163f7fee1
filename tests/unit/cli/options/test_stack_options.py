from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from oku_cli.options.loki_options import LokiOptions
from oku_cli.options.stack_options import StackOptions
from oku_cli.options.watch_options import grafana_option
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement
from oku_core.spec.secrets import SecretSource


def test_a_remote_coordinator_and_its_workers_are_not_told_by_a_user(tmp_path: Path) -> None:
    """Their operator has decided; a flag without effect would mislead."""
    no_loki, no_secrets = LokiOptions(), SecretSource()
    StackOptions(no_loki, no_secrets, Confinement.OFF).refuse()
    cases: dict[str, Any] = {
        "--loki: is a setting of the coord": (
            LokiOptions(loki="http://h"),
            no_secrets,
            Confinement.OFF,
        ),
        "--allow-env: is for a local stack": (no_loki, SecretSource(("A",)), Confinement.OFF),
        "--secrets-dir: is for a local stack": (no_loki, SecretSource((), tmp_path), Confinement.OFF),
        "--confine-user-code: is for a local": (no_loki, no_secrets, Confinement.ON),
        "--require-confinement: is for a local": (no_loki, no_secrets, Confinement.REQUIRED),
        "--broker-url: is for a local": (no_loki, no_secrets, Confinement.OFF, "redis://h"),
    }
    for message, given in cases.items():
        with pytest.raises(UserError, match=f"^{message}"):
            StackOptions(*given).refuse()


@pytest.mark.parametrize("loki", [None, "http://h"])
def test_a_dashboard_is_linked_only_for_a_run_that_writes_to_a_loki(loki: str | None) -> None:
    """The variable may be set for all runs; the flag is meant for this one."""
    found: list[str | None] = []

    @click.command()
    @grafana_option
    def command(grafana: str | None) -> None:
        stack = StackOptions(LokiOptions(loki=loki), SecretSource(), Confinement.OFF)
        found.append(stack.check_grafana(grafana))

    by_variable = CliRunner(env={"OKU_GRAFANA_URL": "http://g"}).invoke(command, [])
    by_flag = CliRunner().invoke(command, ["--grafana", "http://g"])
    assert by_variable.exception is None
    if loki is None:
        assert found == [None]
        assert str(by_flag.exception) == "--grafana: shows what is in a Loki; name that by --loki"
    else:
        assert found == ["http://g", "http://g"]
