"""The entry point of `oku`, as a script and as `python -m oku_cli`."""

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import Never

from oku_cli.exit_code import ExitCode
from oku_cli.process.environment import enter_utf8_mode
from oku_core.process.prctl import become_undumpable

_NOTHING = b"oku: interrupted, nothing was started\n"


def main() -> None:
    """Close this process to others, answer Ctrl-C before anything slow is imported, then run the command."""
    become_undumpable()
    enter_utf8_mode()
    signal.signal(signal.SIGINT, _leave)
    # Nothing that is imported becomes garbage; by default, a seventh of the time of all imports goes into
    # looking for some.
    gc.set_threshold(50_000, 20, 50)
    from oku_cli.main import main as run_command  # noqa: PLC0415  # it takes long

    try:
        run_command()
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        _end(end.code or 0)


def _end(code: int) -> Never:
    """End this process with an exit code, without freeing its memory piece by piece, which takes 20 to 80 ms.

    Commands have closed their files and ended their threads by now.
    """
    import logging  # noqa: PLC0415  # every command has loaded it by now

    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # as when the interpreter ends
            stream.flush()
    os._exit(code)


def _leave(*_: object) -> Never:
    # An exception that is raised amid imports ends in tracebacks of others.
    with suppress(OSError):
        os.write(2, _NOTHING)
    os._exit(ExitCode.CUT_SHORT)


if __name__ == "__main__":
    main()
