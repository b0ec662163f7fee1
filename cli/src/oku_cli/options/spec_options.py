"""The options of a spec, made from its one table of fields."""

from collections.abc import Callable
from typing import Any

import click

from oku_core.spec.fields import FIELDS
from oku_core.spec.spec import Spec

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


def _format_default(value: object) -> str:
    if value is None or value is False or value in ("", ()):
        return ""
    if isinstance(value, float):
        return f"{value:g}s"
    return ",".join(value) if isinstance(value, tuple) else str(value)
