"""The options of a command that begins or follows a run: its screen, summary, key, SIGTERM and Grafana."""

from typing import Any

import click
from click.core import ParameterSource

from oku_cli.follow.watch import Watch
from oku_cli.options.option_group import CommandT, OptionGroup, Parsed, json_option, option
from oku_cli.process.interrupt import SignalAction
from oku_cli.views.dashboard_link import parse_grafana_url
from oku_core.errors import UserError
from oku_core.results.run_api import check_idempotency_key
from oku_core.spec.fields import FieldGroup


def grafana_option(command: CommandT) -> CommandT:
    """`--grafana`; the command gets the address as `grafana`, or None."""
    add = option(
        OptionGroup.LOKI,
        "--grafana",
        metavar="URL",
        envvar="OKU_GRAFANA_URL",
        type=Parsed("url", parse_grafana_url),
        help="Print a link to the run's dashboard in this Grafana, such as http://127.0.0.1:3000.",
    )
    return add(command)


def drop_grafana_without_loki(grafana: str | None) -> str | None:
    """Refuse the flag for a run that writes to no Loki, whose dashboard is empty; ignore the variable."""
    source = click.get_current_context().get_parameter_source("grafana")
    if grafana is not None and source is ParameterSource.COMMANDLINE:
        raise UserError("--grafana: shows what is in a Loki; name that by --loki")
    return None


def once_option(command: CommandT) -> CommandT:
    """`--once KEY`."""
    decorated: CommandT = option(
        OptionGroup.STOPPING,
        "--once",
        metavar="KEY",
        type=Parsed("key", check_idempotency_key),
        help="Send this run once for KEY, such as the name of a job: follow the run that has KEY, resume it "
        "if it is paused, or return its exit code if it is over. "
        "At a coordinator, --on-sigterm then defaults to detach.",
    )(command)
    return decorated


FILE_HINT = "--summary-json FILE writes one (a spec in JSON goes before --json)"
_NAMES = (
    "as_json", "summary_file", "junit_file", "markdown_file", "allows_undecided", "quiet", "grafana",
)  # fmt: skip


def watch_options(command: CommandT) -> CommandT:
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


def sigterm_option(command: CommandT) -> CommandT:
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
