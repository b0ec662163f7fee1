"""`oku completion`: prints the script by which a shell completes words of `oku`, and answers the shell."""

import os
import signal
import sys
from contextlib import suppress
from typing import Never

import click
from click.shell_completion import get_completion_class

from oku_cli.exit_code import ExitCode
from oku_cli.options.option_group import COMPLETION_VARIABLE, GroupedCommand
from oku_core.errors import UserError

SHELLS = ("bash", "zsh", "fish")
_SUPPLEMENTS = {
    # Otherwise @FILE is two words for bash.
    "bash": "COMP_WORDBREAKS=${COMP_WORDBREAKS//@}\n"
}
_LONGEST_S = 5.0
"""A prompt that hangs is worse than one that offers nothing."""


@click.command(name="completion", cls=GroupedCommand)
@click.argument("shell", type=click.Choice(SHELLS), metavar="bash|zsh|fish", required=False)
@click.pass_context
def command(context: click.Context, shell: str | None) -> int:
    """Print the script by which a shell completes words.

    It completes commands, flags, their values and runs. Of runs, latest, ids and names are offered: those
    that the command can take, newest first.

    \b
    In ~/.bashrc:
      eval "$(oku completion bash)"
    In ~/.zshrc, after compinit:
      eval "$(oku completion zsh)"
    In ~/.config/fish/config.fish:
      oku completion fish | source
    """  # noqa: D301  # click's sign for lines that stay as they are
    if shell is None:
        raise UserError(f"completion: the shell is missing, one of {', '.join(SHELLS)}")
    completing = get_completion_class(shell)
    assert completing is not None, "click knows all of them"
    script = completing(context.find_root().command, {}, "oku", COMPLETION_VARIABLE).source()
    sys.stdout.write(script + _SUPPLEMENTS.get(shell, ""))
    return ExitCode.COMPLETED


def answer_shell(oku: click.Group) -> Never:
    """Answer a shell that completes a word; no error may disturb its prompt."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # The look-up of a name may hang. In a thread, it would be waited for even at the end.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(ExitCode.COMPLETED))
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_S)
    with suppress(Exception):
        oku.main(prog_name="oku", standalone_mode=False, complete_var=COMPLETION_VARIABLE)
    sys.exit(ExitCode.COMPLETED)
