import asyncio
from types import SimpleNamespace
from typing import Any

from oku_workers.engines.aiohttp.protocol import CURRENT_SLOT, AnswerBody, ResponseProtocol

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"


async def test_of_each_body_so_much_is_kept_as_its_request_needs() -> None:
    """Requests to several targets follow each other on one connection, and few of them look at bodies."""
    wanted = [2, 0, 5, 0]
    slot: Any = SimpleNamespace()
    CURRENT_SLOT.set(slot)
    protocol = ResponseProtocol(asyncio.get_running_loop())
    transport: Any = asyncio.Transport()
    protocol.connection_made(transport)
    kept = []
    for size in wanted:
        slot.route = SimpleNamespace(needs=(size, False))
        protocol.set_response_params()
        protocol.data_received(ANSWER)
        _, body = await protocol.read()
        assert isinstance(body, AnswerBody)
        kept.append(bytes(body.kept))
    assert kept == [b"ab", b"", b"abc", b""]
