"""`python -m oku.host KIND SOCKET SLOTS PARENT MEMORY`: runs user code for the worker that has started it.

The arguments are an engine of user code, the descriptors of a connected socket and of the file of slots, the
process id of the worker, and how many bytes of memory this process may hold, 0 for any number.
"""

import io
import os
import socket
import sys
from contextlib import suppress

from oku.sandbox.file_confinement import prepare_host
from oku.sandbox.process_confinement import AbandonedError, confine
from oku_core.process.redaction import redact
from oku_core.user_code.messages import Leaving, Refused, Start, frame

_MOST_CHARS = 120
_NOT_INSTALLED = "Locust is not installed beside this worker: pip install locust"


def main() -> None:
    """Read what to run, and run it until the worker says so, or is gone."""
    kind = sys.argv[1]
    socket_file, slots_file, parent, memory_bytes = map(int, sys.argv[2:])
    try:
        confine(parent, memory_bytes)
    except AbandonedError:
        sys.exit(1)
    for file in (socket_file, slots_file):
        os.set_inheritable(file, False)  # noqa: FBT003  # its only argument but the file
    connection = socket.socket(fileno=socket_file)
    last_words = connection.dup()  # the host closes the other one
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Printing reaches the log at once, in the encoding that the worker reads, and never fails.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    try:
        _serve(kind, connection, slots_file)
    except BaseException as error:
        with suppress(OSError, MemoryError):
            last_words.send(frame(explain_leaving(error)), socket.MSG_DONTWAIT)
        raise


def explain_leaving(error: BaseException) -> Leaving:
    """Build the last message of a host that an exception ends unexpectedly."""
    if isinstance(error, MemoryError):
        return Leaving("it reached its memory limit and could not go on (MemoryError)", is_memory=True)
    if isinstance(error, SystemExit):
        return Leaving(f"it called sys.exit({_shorten(redact(repr(error.code)))})")
    said = " ".join(redact(str(error)).split())
    return Leaving(f"it failed: {type(error).__name__}{f': {_shorten(said)}' if said else ''}")


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 2]} …"


def _serve(kind: str, connection: socket.socket, slots_file: int) -> None:
    if kind == "locust":
        _serve_locust(connection, slots_file)
        return
    from oku.scenario_host.python_host import serve  # noqa: PLC0415  # it loads an event loop

    serve(connection, slots_file)


def _serve_locust(connection: socket.socket, slots_file: int) -> None:
    start = prepare_host(connection)
    if start is None:
        return
    assert isinstance(start, Start)
    if not _load_locust():
        connection.sendall(frame(Refused(_NOT_INSTALLED)))
        return
    from oku.locust_host.locust_host import run_host  # noqa: PLC0415  # Locust has to be loaded before it

    run_host(connection, slots_file, start)


def _load_locust() -> bool:
    """Load Locust, which patches the standard library; returns whether it is installed."""
    try:
        import locust  # noqa: F401, PLC0415  # patches as it is loaded
    except ModuleNotFoundError as error:
        if error.name not in ("locust", "gevent"):
            raise
        return False
    return True


if __name__ == "__main__":
    main()
