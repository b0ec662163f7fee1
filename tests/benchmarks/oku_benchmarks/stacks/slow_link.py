"""A broker that is far away: a TCP port before its Unix socket, through which every byte takes a while.

`python -m oku_benchmarks.stacks.slow_link SOCKET ROUND_TRIP_S FILE`; FILE gets the port. What is sent
together arrives together: the delay limits no throughput. Until SIGTERM.
"""

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PIECE_BYTES = 65_536


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Write what is read so much later, in order."""
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            loop.call_later(delay_s, _write, writer, piece)
    await asyncio.sleep(delay_s)
    writer.close()


def _write(writer: asyncio.StreamWriter, piece: bytes) -> None:
    if not writer.is_closing():
        writer.write(piece)


async def serve(socket: str, round_trip_s: float, file: Path) -> None:
    """Listen until SIGTERM."""
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)

    async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_unix_connection(socket)
        await asyncio.gather(
            carry(reader, broker_writer, round_trip_s / 2), carry(broker_reader, writer, round_trip_s / 2)
        )

    server = await asyncio.start_server(enter, "127.0.0.1", 0)
    new = file.with_suffix(".new")
    new.write_text(str(server.sockets[0].getsockname()[1]))
    new.rename(file)
    await ending.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])))
