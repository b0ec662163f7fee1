"""The exit codes of `oku`; docs/scripts.md has this table."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every subcommand."""

    COMPLETED = 0
    """The run completed."""
    NOT_PASSED = 1
    """A threshold failed or is undecided, or nothing was ok."""
    WRONG_INPUT = 2
    """The input is wrong; nothing was started."""
    CUT_SHORT = 3
    """The run failed or was cut short, or the command was; the ledger has the run's progress."""
    UNBALANCED = 4
    """The account of the run does not balance."""
