"""The options of a spec, made from its one table of fields."""

from collections.abc import Callable
from typing import Any

from oku_cli.options.option_group import option
from oku_cli.options.spec.value_completion import VALUE_COMPLETIONS
from oku_core.spec.fields import FIELDS, Field, describe_default
from oku_core.spec.spec import Spec

_ON_COMMAND_LINE = [field for field in FIELDS if not field.file_only]
_Command = Callable[..., Any]


def spec_options(command: _Command) -> _Command:
    """An option for every field of a spec. Values are not read here: `parse_spec` does, for files as well."""
    for field in reversed(_ON_COMMAND_LINE):
        default = describe_default(field)
        note = f"  [default: {default}]" if default else ""
        flags = (*field.short, f"--{field.long_flag}", *field.other_flags, _name(field))
        text = field.help + note
        shape: dict[str, Any] = (
            {"is_flag": True, "default": None, "flag_value": not getattr(Spec(), field.attribute)}
            if field.is_switch
            else {
                "metavar": field.metavar,
                "multiple": field.repeatable,
                "shell_complete": VALUE_COMPLETIONS.get(field.key),
            }
        )
        command = option(field.group, *flags, help=text, **shape)(command)
    return command


def pick_spec_values(options: dict[str, Any]) -> dict[str, object]:
    """Take the options of a spec that were given out of all options of a command."""
    values = {field.key: options.pop(_name(field)) for field in _ON_COMMAND_LINE}
    return {key: value for key, value in values.items() if value is not None and value != ()}


def _name(field: Field) -> str:
    """The parameter of a command that an option becomes."""
    return field.key.replace("-", "_")
