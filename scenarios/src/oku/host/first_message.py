"""Reads the first message of a worker, before there is an event loop; from then on its secrets are hidden."""

import socket

from oku_core.process.redaction import hide
from oku_core.user_code.messages import Call, FrameReader, Start, ToHost

_CHUNK_BYTES = 1 << 16


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
