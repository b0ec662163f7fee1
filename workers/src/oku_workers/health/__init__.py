"""The threads that show that a worker lives and end it when it is stuck."""

from collections.abc import Callable

EXIT_STUCK = 70
"""Exit code of a worker that is stuck and ends, to be restarted (EX_SOFTWARE of sysexits.h)."""
ExitProcess = Callable[[int], object]
"""Ends the process at once with a code, as `os._exit`."""
