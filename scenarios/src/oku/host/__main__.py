"""`python -m oku.host KIND SOCKET SLOTS PARENT MEMORY`: runs user code for the worker that has started it.

The arguments are an engine of user code, the descriptors of a connected socket and of the file of slots, the
process id of the worker, and how many bytes of memory this process may hold, 0 for any number.
"""

import io
import os
import socket
import sys
from contextlib import suppress

from oku.host.confinement import AbandonedError, confine
from oku.host.exit_reason import explain_leaving
from oku_core.user_code.messages import frame


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
    last_words = connection.dup()  # what runs the user code closes the other one
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


def _serve(kind: str, connection: socket.socket, slots_file: int) -> None:
    if kind == "locust":
        from oku.locust_host.serve import serve  # noqa: PLC0415  # it patches the standard library

        serve(connection, slots_file)
        return
    from oku.host.python_host import serve as serve_python  # noqa: PLC0415  # the other one must not load it

    serve_python(connection, slots_file)


if __name__ == "__main__":
    main()
