"""The options that say how a run is followed, where its summary goes, and what SIGTERM does meanwhile."""

from collections.abc import Callable
from typing import Any

import click

from oku_cli.options.grafana_option import grafana_option
from oku_cli.options.json_option import json_option
from oku_cli.options.option_group import OptionGroup, option
from oku_cli.process.interrupt import SignalAction
from oku_cli.remote.watch import Watch
from oku_core.spec.fields import FieldGroup

FILE_HINT = "--summary-json FILE writes one (a spec in JSON goes before --json)"
_NAMES = (
    "as_json", "summary_file", "junit_file", "markdown_file", "allows_undecided", "quiet", "grafana",
)  # fmt: skip
_Command = Callable[..., Any]


def watch_options(command: _Command) -> _Command:
    """`--json`, the files of a summary, `--allow-undecided`, `--quiet` and `--grafana`."""
    command = grafana_option(command)
    command = option(
        FieldGroup.THRESHOLDS,
        "--allow-undecided",
        "allows_undecided",
        is_flag=True,
        help="Do not let an undecided threshold change the exit code.",
    )(command)
    command = option(
        OptionGroup.OUTPUT,
        "--summary-markdown",
        "markdown_file",
        metavar="FILE",
        help="Also write the summary as Markdown to FILE, for the page of a CI run.",
    )(command)
    command = option(
        OptionGroup.OUTPUT,
        "--junit",
        "junit_file",
        metavar="FILE",
        help="Also write a test case for each threshold and each flag as JUnit XML to FILE.",
    )(command)
    command = option(OptionGroup.OUTPUT, "--quiet", is_flag=True, help="Show no progress.")(command)
    command = option(
        OptionGroup.OUTPUT,
        "--summary-json",
        "summary_file",
        metavar="FILE",
        help="Also write the summary as JSON to FILE.",
    )(command)
    return json_option("the summary")(command)


def sigterm_option(command: _Command) -> _Command:
    """`--on-sigterm`, for a command that follows the run that it has begun or resumed."""
    return option(
        OptionGroup.STOPPING,
        "--on-sigterm",
        metavar="|".join(SignalAction),
        type=click.Choice([str(action) for action in SignalAction]),
        help="What SIGTERM does: pause the run, cancel it, or let it go on at its coordinator without this "
        "command; default: pause.",
    )(command)


def pick_watch(options: dict[str, Any], on_sigterm: SignalAction = SignalAction.PAUSE) -> Watch:
    """Take these options out of `options`; `UserError` if a file cannot be written.

    Args:
        options: those of a command.
        on_sigterm: what SIGTERM does if the user has not said it.
    """
    given = options.pop("on_sigterm", None)
    action = on_sigterm if given is None else SignalAction(given)
    watch = Watch(**{name: options.pop(name) for name in _NAMES}, on_sigterm=action)
    watch.check()
    return watch
