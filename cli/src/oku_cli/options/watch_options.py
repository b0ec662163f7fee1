"""The options of a command that begins or follows a run: its screen, summary, key, SIGTERM and Grafana."""

from typing import Any

import click

from oku_cli.follow.watch import Watch
from oku_cli.options.option_group import OptionGroup, Parsed, add_options, json_option, option
from oku_cli.process.interrupt import SignalAction
from oku_cli.views.dashboard_link import parse_grafana_url
from oku_core.results.run_api import check_idempotency_key
from oku_core.spec.fields import FieldGroup

grafana_option = option(
    OptionGroup.LOKI,
    "--grafana",
    metavar="URL",
    envvar="OKU_GRAFANA_URL",
    type=Parsed("url", parse_grafana_url),
    help="Print a link to the run's dashboard in this Grafana, such as http://127.0.0.1:3000.",
)


once_option = option(
    OptionGroup.STOPPING,
    "--once",
    metavar="KEY",
    type=Parsed("key", check_idempotency_key),
    help="Send this run once for KEY, such as the name of a job: follow the run that has KEY, resume it "
    "if it is paused, or return its exit code if it is over. "
    "At a coordinator, --on-sigterm then defaults to detach.",
)

FILE_HINT = "--summary-json FILE writes one (a spec in JSON goes before --json)"
_NAMES = (
    "as_json", "summary_file", "junit_file", "markdown_file", "html_file", "allows_undecided", "quiet",
    "grafana",
)  # fmt: skip

watch_options = add_options(
    json_option("the summary"),
    option(
        OptionGroup.OUTPUT,
        "--summary-json",
        "summary_file",
        metavar="FILE",
        help="Also write the summary as JSON to FILE.",
    ),
    option(OptionGroup.OUTPUT, "--quiet", is_flag=True, help="Show no progress."),
    option(
        OptionGroup.OUTPUT,
        "--junit",
        "junit_file",
        metavar="FILE",
        help="Also write a test case for each threshold and each flag as JUnit XML to FILE.",
    ),
    option(
        OptionGroup.OUTPUT,
        "--summary-markdown",
        "markdown_file",
        metavar="FILE",
        help="Also write the summary as Markdown to FILE, for the page of a CI run.",
    ),
    option(
        OptionGroup.OUTPUT,
        "--html",
        "html_file",
        metavar="FILE",
        help="Also write the report as one HTML page to FILE.",
    ),
    option(
        FieldGroup.THRESHOLDS,
        "--allow-undecided",
        "allows_undecided",
        is_flag=True,
        help="Do not let an undecided threshold change the exit code.",
    ),
    grafana_option,
)
"""`--json`, the files of a summary and of a report, `--allow-undecided`, `--quiet` and `--grafana`."""

sigterm_option = option(
    OptionGroup.STOPPING,
    "--on-sigterm",
    metavar="|".join(SignalAction),
    type=click.Choice([str(action) for action in SignalAction]),
    help="What SIGTERM does: pause the run, cancel it, or let it go on at its coordinator without this "
    "command; default: pause.",
)
"""For a command that follows the run that it has begun or resumed."""


def pick_watch(options: dict[str, Any], on_sigterm: SignalAction = SignalAction.PAUSE) -> Watch:
    """Take these options out of all of a command; `UserError` if a file cannot be written.

    SIGTERM does `on_sigterm` unless the user has set it.
    """
    given = options.pop("on_sigterm", None)
    action = on_sigterm if given is None else SignalAction(given)
    watch = Watch(**{name: options.pop(name) for name in _NAMES}, on_sigterm=action)
    watch.check()
    return watch
