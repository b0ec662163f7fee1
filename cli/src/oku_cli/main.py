"""The `oku` command: finds the subcommand, and reports a user's mistake in one line with exit code 2."""

import importlib
import os
import signal
import sys

import click

from oku_cli.exit_code import ExitCode
from oku_cli.process.logs import report_mistake
from oku_cli.process.standard_streams import StandardStreams
from oku_cli.terminal.printable import write_error
from oku_core.errors import UserError

COMMANDS = (
    "run", "resume", "pause", "cancel", "runs", "show", "report", "rm", "server", "worker", "coordinator"
)  # fmt: skip


class _Commands(click.Group):
    """Imports a subcommand only when it is used, so that `oku server` does not load Celery."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"oku_cli.commands.{cmd_name}")
        # From here on it is the command's to say what an interrupt leaves behind.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        command: click.Command = module.command
        return command


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="oku", message="oku %(version)s")
def oku() -> None:
    """Make a very large, exactly known number of HTTP requests, and account for every one."""


def main() -> None:
    """Run the command that `sys.argv` has, and end this process with its exit code."""
    streams = StandardStreams()
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
        report_mistake(error.format_message() if isinstance(error, click.UsageError) else str(error))
        sys.exit(ExitCode.WRONG_INPUT)
    except click.exceptions.Abort:
        write_error("interrupted, nothing was started")
        sys.exit(ExitCode.CUT_SHORT)
    if not code and (failure := streams.find_failure()):
        write_error(failure)
        sys.exit(ExitCode.WRONG_INPUT)
    sys.exit(code if isinstance(code, int) else 0)
