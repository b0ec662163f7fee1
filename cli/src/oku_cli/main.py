"""The `oku` command: finds the subcommand, and reports a user's mistake in one line with exit code 2."""

import difflib
import importlib
import os
import signal
import sys

import click
from click.shell_completion import CompletionItem

from oku_cli.commands.completion import answer_shell
from oku_cli.exit_code import ExitCode
from oku_cli.options.option_group import COMPLETION_VARIABLE, write_examples
from oku_cli.process.logs import report_mistake
from oku_cli.process.standard_streams import StandardStreams
from oku_cli.terminal.printable import write_error
from oku_core.errors import UserError

_VERSION = "0.1.0"
_COMMANDS_BY_HEADING = {
    "Commands": {
        "run": "Run a load test and account for every request.",
        "resume": "Resume a paused or interrupted run, even days later.",
        "pause": "Pause a run once its requests in flight have ended.",
        "cancel": "End a run for good; its account stays.",
        "wait": "Wait for a run to end, and end with its exit code.",
        "runs": "List runs, newest first.",
        "show": "Show the summary of a run in any state, or one of its requests.",
        "failures": "List the requests of a run that failed, by their indices, and why.",
        "replay": "Send one request of a run once, from here, and show it with its answer.",
        "retry": "Send the failed requests of a run again, each under its index.",
        "report": "Write a report of a run in any state as one HTML file.",
        "compare": "Compare run B with run A, and find whether it is faster.",
        "rm": "Delete runs with their accounts, histories and reports.",
        "import": "Write a spec from what you have: KIND is curl, har or openapi.",
        "completion": "Print the script by which a shell completes words.",
    },
    "Processes, as pods run them": {
        "server": "Run a delay server: a target that answers after a delay.",
        "worker": "Run a worker, which takes leases and sends their requests.",
        "coordinator": "Run the coordinator: the ledger, the leases and the HTTP API.",
    },
}
"""The first sentence of each command's help, for which `oku --help` and a shell import no command."""
COMMANDS = tuple(name for commands in _COMMANDS_BY_HEADING.values() for name in commands)
_PLACES = {
    "cancel": "run_control:cancel",
    "import": "import_spec:command",
    "pause": "run_control:pause",
    "resume": "existing_run:resume",
    "retry": "existing_run:retry",
    "rm": "run_control:delete",
    "runs": "runs:list_runs",
    "show": "runs:show",
}
"""Module and name of commands that are not the `command` of a module with their name."""
_EXAMPLES = {
    "Send 1000 requests to your own service, 50 at a time": "oku run http://127.0.0.1:8080/ -n 1000 -c 50",
    "Send 100,000 requests to servers that Oku brings": "oku run",
    "See all options of a command": "oku run --help",
}

_DURATION = "--duration is the time after which a run ends"
_RATE = "--rate sets the rate of requests"
_USERS = "-c is the number of requests in flight"
_REQUESTS = "-n is the number of requests"
_FLAGS_ELSEWHERE = {
    "--run-time": _DURATION, "--rps": _RATE,
    "--users": _USERS, "--vus": _USERS,
    "-i": _REQUESTS, "--iterations": _REQUESTS,
}  # fmt: skip
"""What `oku run` has for flags that hey, oha, k6 and Locust taught people."""


class _Commands(click.Group):
    """Imports a subcommand only when it is used, so that `oku server` does not load Celery."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, function = _PLACES.get(cmd_name, f"{cmd_name}:command").partition(":")
        command: click.Command = getattr(importlib.import_module(f"oku_cli.commands.{module}"), function)
        # From here on the command reports the consequences of an interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but suggest a command when there is no such one."""
        name = args[0]
        if name not in COMMANDS and name[:1] != "-":
            raise click.UsageError(f"No such command {name!r}{_suggest(name)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete commands, and else the options of `oku` itself."""
        commands = [
            CompletionItem(name, help=text)
            for texts in _COMMANDS_BY_HEADING.values()
            for name, text in texts.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first: readers look for one."""
        width = max(map(len, COMMANDS))
        for heading, texts in _COMMANDS_BY_HEADING.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in texts.items()])
        click.Command.format_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(_EXAMPLES, formatter)


def _suggest(name: str) -> str:
    if "://" in name:
        return f"; test a URL with: oku run {name}"
    # Two of them, in the order of the help: the nearest to rum is rm.
    close = difflib.get_close_matches(name, COMMANDS, n=2)
    near = " or ".join(command for command in COMMANDS if command in close)
    return f", did you mean {near}?" if near else "; oku --help lists all"


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(_VERSION, message="oku %(version)s")
def oku() -> None:
    """Make a very large, exactly known number of HTTP requests, and account for every one."""


def main() -> None:
    """Run the command that `sys.argv` has, and end this process with its exit code."""
    streams = StandardStreams()
    if COMPLETION_VARIABLE in os.environ:
        answer_shell(oku)
    if os.getpid() == 1:
        # In a container. The kernel keeps from the first process what it has no handler for; until a command
        # has its own, SIGTERM is to end it as it does any other.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    try:
        code = oku.main(prog_name="oku", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())  # noqa: TID251  # our own help
        sys.exit(ExitCode.COMPLETED)
    except (UserError, click.UsageError) as error:
        report_mistake(_describe(error))
        sys.exit(ExitCode.WRONG_INPUT)
    except click.exceptions.Abort:
        write_error("interrupted, nothing was started")
        sys.exit(ExitCode.CUT_SHORT)
    if not code and (failure := streams.find_failure()):
        write_error(failure)
        sys.exit(ExitCode.WRONG_INPUT)
    sys.exit(code if isinstance(code, int) else 0)


def _describe(error: UserError | click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption):
        command = error.ctx.command.name if error.ctx else None
        if command == "run" and error.option_name in _FLAGS_ELSEWHERE:
            return f"No such option {error.option_name!r}: {_FLAGS_ELSEWHERE[error.option_name]}"
        if error.possibilities:
            return f"No such option {error.option_name!r}, did you mean {error.possibilities[0]}?"
    return error.format_message() if isinstance(error, click.UsageError) else str(error)
