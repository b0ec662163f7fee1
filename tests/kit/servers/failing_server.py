"""A server that fails at known indices: `python -m tests.kit.servers.failing_server PORT [fails]`.

It reads the index from the end of the path. While `fails` is given, every hundredth index from 3 on gets a
503, and on those from 500 to 519 it hangs up.
"""

import asyncio
import sys

HANGS_UP = range(500, 520)
REFUSES_EVERY, REFUSES_FROM = 100, 3


def list_failing(requests: int) -> dict[int, str]:
    """The outcome of each index below `requests` that fails."""
    failing = dict.fromkeys(range(REFUSES_FROM, requests, REFUSES_EVERY), "unexpected_status")
    return failing | dict.fromkeys(HANGS_UP, "disconnected")


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    fails = sys.argv[2:] == ["fails"]
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            index = int(head.split(b" ")[1].rsplit(b"/", 1)[1])
            await asyncio.sleep(0.01)
            if fails and index in HANGS_UP:
                return
            is_refused = fails and index % REFUSES_EVERY == REFUSES_FROM
            status = b"503 Service Unavailable" if is_refused else b"200 OK"
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok" % status)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _serve(port: int) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
