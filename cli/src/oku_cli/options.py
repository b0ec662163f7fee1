"""The options that subcommands share, and those of a spec, made from its one table of fields."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from oku_cli.data_dir import DEFAULT, Endpoint
from oku_core.errors import UserError
from oku_core.spec import Spec
from oku_core.spec_fields import FIELDS

_Command = Callable[..., Any]


def spec_options(command: _Command) -> _Command:
    """An option for every field of a spec. Values are not read here: `parse_spec` does, for files as well."""
    for field in reversed(FIELDS):
        default = _format_default(getattr(Spec(), field.attribute))
        note = f"  [default: {default}]" if default else ""
        option = (
            click.option(f"--{field.key}", is_flag=True, default=None, help=field.help)
            if field.is_switch
            else click.option(
                f"--{field.key}", metavar=field.metavar, help=field.help + note, multiple=field.repeatable
            )
        )
        command = option(command)
    return command


def pick_spec_values(options: dict[str, Any]) -> dict[str, object]:
    """Take the options of a spec that were given out of all options of a command."""
    values = {field.key: options.pop(field.key.replace("-", "_")) for field in FIELDS}
    return {key: value for key, value in values.items() if value is not None and value != ()}


def data_dir_option(command: _Command) -> _Command:
    """`--data-dir`."""
    option = click.option(
        "--data-dir", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT, show_default=True,
        envvar="OKU_DATA_DIR", help="Folder of the ledger, the logs and the broker of local runs.",
    )  # fmt: skip
    return option(command)


def remote_options(command: _Command) -> _Command:
    """`--coordinator` and `--token`."""
    command = click.option("--token", envvar="OKU_TOKEN", help="Token of that coordinator.")(command)
    option = click.option(
        "--coordinator",
        metavar="URL",
        envvar="OKU_COORDINATOR",
        help="A running coordinator instead of a local stack.",
    )
    return option(command)


def watch_options(command: _Command) -> _Command:
    """`--json` and `--quiet`."""
    command = click.option("--quiet", is_flag=True, help="Show no progress.")(command)
    option = click.option(
        "--json", "json_file", metavar="FILE", help="Write the summary as JSON; - is standard output."
    )
    return option(command)


def refuse_local_shape(spec: Spec) -> None:
    """What shapes Oku's own delay servers has no meaning for a coordinator elsewhere."""
    for field in FIELDS:
        if field.own_servers_only and getattr(spec, field.attribute) != getattr(Spec(), field.attribute):
            raise UserError(
                f"--{field.key}: shapes the delay servers of a local stack, "
                "it does not go together with --coordinator"
            )


def build_endpoint(coordinator: str | None, token: str | None) -> Endpoint | None:
    """The coordinator that was named, or None for a local one."""
    if coordinator is None:
        return None
    if not coordinator.startswith(("http://", "https://")):
        raise UserError(f"--coordinator: {coordinator} is not a URL such as http://127.0.0.1:8700")
    if not token:
        raise UserError("--token: a coordinator elsewhere wants a token, none is given")
    return Endpoint(coordinator.rstrip("/"), token)


def _format_default(value: object) -> str:
    if value is None or value is False or value in ("", ()):
        return ""
    if isinstance(value, float):
        return f"{value:g}s"
    return ",".join(value) if isinstance(value, tuple) else str(value)
