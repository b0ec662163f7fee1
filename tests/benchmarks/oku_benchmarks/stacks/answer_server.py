"""A target that answers at once and counts nothing, so that it keeps up with any client of one core.

`python -m oku_benchmarks.stacks.answer_server FOLDER`. It listens on a free port of the loopback, and writes
its address to FOLDER/address. Below `/varying/` no two answers are the same.
"""

import asyncio
import signal
import sys
from itertools import count
from pathlib import Path
from typing import cast

import uvloop

from oku_benchmarks.measuring.target_process import TargetProcess

VARYING = "/varying/"
_VARYING_BEGIN = f"GET {VARYING}".encode()
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n"
_END = b"\r\nHello, World!"


class AnswerServer(TargetProcess):
    """Serves from entering to leaving.

    Args:
        folder: for its files.
    """

    def __init__(self, folder: Path) -> None:
        command = (sys.executable, "-m", "oku_benchmarks.stacks.answer_server", str(folder))
        super().__init__(command, folder / "target.log", folder / "address")


class _Connection(asyncio.Protocol):
    """Takes whole requests only, without bodies: clients that send one at a time."""

    _numbers = count()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(_VARYING_BEGIN):
            self._transport.write(b"%bX-Request-Id: %d\r\n%b" % (_HEAD, next(self._numbers), _END))
        else:
            self._transport.write(_HEAD + _END)


async def serve(folder: Path) -> None:
    """Serve until SIGTERM."""
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    (folder / "address.new").write_text(f"127.0.0.1:{port}")
    (folder / "address.new").rename(folder / "address")
    await ending.wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
