"""A target that speaks HTTP/2 in clear text, for a pod: the Python of Oku's image runs its text as it is.

It answers each request with the path that was asked for. When it is told to end, it says how many requests
there were, and for how many paths.
"""

import asyncio
import signal
import sys
from typing import ClassVar, cast

import ngh2

PORT = 8080
LISTENING = "listening"


class Connection(asyncio.Protocol):
    """One connection of a client."""

    served = 0
    """Requests on all of them."""
    paths: ClassVar[set[bytes]] = set()
    """That were asked for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say what is allowed."""
        self._transport = cast("asyncio.Transport", transport)
        self._session = ngh2.Connection(ngh2.Role.SERVER)
        self._session.initiate_connection({ngh2.Setting.MAX_CONCURRENT_STREAMS: 100})
        self._transport.write(self._session.data_to_send())

    def data_received(self, data: bytes) -> None:
        """Answer what came."""
        self._session.receive_data(data)
        for event in self._session.events():
            if isinstance(event, ngh2.RequestReceived):
                self._answer(event.stream_id, dict(event.headers)[b":path"])
        self._transport.write(self._session.data_to_send())

    def _answer(self, stream: int, path: bytes) -> None:
        Connection.served += 1
        Connection.paths.add(path)
        self._session.send_response(stream, [(b":status", b"200"), (b"content-type", b"text/plain")])
        self._session.send_data(stream, path, end_stream=True)


async def serve() -> None:
    """Serve until told to end."""
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    await loop.create_server(Connection, "0.0.0.0", PORT)
    sys.stdout.write(f"{LISTENING}\n")
    sys.stdout.flush()
    await ending.wait()
    sys.stdout.write(f"served {Connection.served} of {len(Connection.paths)} paths\n")


if __name__ == "__main__":
    asyncio.run(serve())
