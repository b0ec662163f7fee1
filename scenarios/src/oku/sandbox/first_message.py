"""Reads the first message of a worker, hides its secrets and confines its host.

All of this happens before there is an event loop or user code.
"""

import socket

from oku.sandbox.file_confinement import confine_files
from oku_core.process.redaction import hide
from oku_core.user_code.messages import Call, FrameReader, Refused, Start, ToHost, frame

_CHUNK_BYTES = 1 << 16


def prepare_host(connection: socket.socket) -> Start | Call | None:
    """Confine this host as its first message says, and return that message.

    If that fails, it tells the worker and returns None.

    Raises:
        EOFError: the worker has gone.
    """
    message = read_first_message(connection)
    try:
        if message.is_confined:
            confine_files(message)
    except OSError as error:
        reason = f"user code cannot be confined here: {error.strerror or error}"
        connection.sendall(frame(Refused(reason)))
        return None
    return message


def read_first_message(connection: socket.socket) -> Start | Call:
    """What this host is for; `EOFError` if the worker has gone."""
    reader = FrameReader(ToHost)
    while True:
        data = connection.recv(_CHUNK_BYTES)
        if not data:
            raise EOFError("the worker has gone")
        for message in reader.feed(data):
            if isinstance(message, (Start, Call)):
                hide(*message.secrets)
                return message
            raise ValueError(f"the first message is {type(message).__name__}")
