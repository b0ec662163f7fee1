"""The options of a spec, made from its one table of fields, and what a shell completes for their values."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from oku_cli.options.option_group import CommandT, is_plain_word, option
from oku_cli.user_code.locust_names import list_tags, list_user_classes
from oku_core.errors import UserError
from oku_core.schedule.stage import Arrivals
from oku_core.spec.fields import FIELDS, Field, describe_default
from oku_core.spec.spec import AUTO_ENGINE, Engine, Spec

_Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_MARK = "@"
_MOST_FILES = 200


def _offer(*words: str) -> _Complete:
    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return [CompletionItem(word) for word in words if word.lower().startswith(incomplete.lower())]

    return complete


def _complete_body(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete `@FILE`, which shells do not take for a path; other text is a body of its own."""
    if not incomplete.startswith(_MARK):
        return []
    begun = incomplete.removeprefix(_MARK)
    folder, slash, name = begun.rpartition("/")
    paths = _list_paths(Path(folder + slash).expanduser(), name)
    if len(paths) == 1 and paths[0].endswith("/"):
        # After a word that stands alone, shells write a space, and one would have to go back.
        paths += [paths[0] + path for path in _list_paths(Path(folder + slash + paths[0]).expanduser(), "")]
    return [CompletionItem(f"{_MARK}{folder}{slash}{path}") for path in paths[:_MOST_FILES]]


def _complete_file(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Complete `@FILE`, or leave a path to the shell."""
    if incomplete.startswith(_MARK):
        return _complete_body(context, parameter, incomplete)
    return [CompletionItem(incomplete, type="file")]


def _complete_code(find: Callable[[Path], list[str]]) -> _Complete:
    """Complete names of the locustfile that stands in the command."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        # When a command ends with a flag, click takes the words before it for unknown arguments.
        given = [context.params.get("scenario"), *(context.params.get("targets") or ()), *context.args]
        code = [Path(name).expanduser() for name in given if name and name.endswith(".py")]
        names: list[str] = []
        # It may be that it is not there, or not written to its end.
        with suppress(UserError):
            names = [name for path in code if path.is_file() for name in find(path)]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return complete


def _list_paths(folder: Path, begun: str) -> list[str]:
    try:
        found = [f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir()]
    except OSError:
        return []
    shown = [name for name in found if not name.startswith(".") or begun.startswith(".")]
    return sorted(name for name in shown if name.startswith(begun) and is_plain_word(_MARK + name))


VALUE_COMPLETIONS: Mapping[str, _Complete] = {
    "arrivals": _offer(*Arrivals),
    "body": _complete_body,
    "cacert": _complete_file,
    "cert": _complete_file,
    "engine": _offer(AUTO_ENGINE, *Engine),
    "exclude-tags": _complete_code(list_tags),
    "key": _complete_file,
    "method": _offer(*_METHODS),
    "tags": _complete_code(list_tags),
    "user-classes": _complete_code(list_user_classes),
}
"""By the key of a spec."""


_ON_COMMAND_LINE = [field for field in FIELDS if not field.file_only]


def spec_options(command: CommandT) -> CommandT:
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
