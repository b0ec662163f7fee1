"""A site for user code: what it answers is written in the path that is asked for.

| path | answer |
| --- | --- |
| `/status/503` | that status |
| `/slow/2.5` | after so many seconds |
| `/reset`, `/hangup` | the connection ends |
| `/garbage` | no HTTP |
| `/short` | less of a body than was announced |
| `/echo/NAME` | the value of that header of the request |
| any other | 200 |
"""

import asyncio

from tests.kit.servers.hostile_server import Exchange, build_response


async def answer_by_path(exchange: Exchange) -> None:
    """Answer as the path says."""
    _, kind, *rest = exchange.request.target.split("/")
    if kind == "reset":
        exchange.reset()
    elif kind == "hangup":
        exchange.hang_up()
    elif kind == "garbage":
        await exchange.send(b"220 mail.example ESMTP\r\n")
    elif kind == "short":
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
        exchange.hang_up()
    elif kind == "status":
        await exchange.send(build_response(f"{rest[0]} Status", b"no"))
    elif kind == "echo":
        body = ",".join(exchange.request.header(rest[0].lower()))
        await exchange.send(build_response(body=body.encode()))
    else:
        if kind == "slow":
            await asyncio.sleep(float(rest[0]))
        await exchange.send(build_response(body=b"hi"))
