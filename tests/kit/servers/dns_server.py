"""A DNS server on the loopback that knows one name, and a way to have a process ask it."""

import asyncio
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

_A, _IN, _PORT = 1, 1, 53
_ANSWER = 0x8180
_POINTER_TO_NAME = 0xC00C


@dataclass
class DnsServer:
    """Answers each question for an IPv4 address with the same ones, and all others with none.

    Attributes:
        addresses: what a name has.
        delay_s: how long an answer takes.
        host: the address that it listens on; the port is that of DNS, for which one has to be root.
        asked: the questions for IPv4 addresses, by the time at which they came.
    """

    addresses: tuple[str, ...]
    delay_s: float = 0.0
    host: str = "127.0.0.153"
    asked: list[float] = field(default_factory=list)
    _transport: asyncio.DatagramTransport | None = None

    async def start(self) -> None:
        """Listen; `PermissionError` for who is not root."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(
            lambda: _Questions(self), local_addr=(self.host, _PORT)
        )

    def end(self) -> None:
        """Answer nobody any more."""
        if self._transport is not None:
            self._transport.close()

    def build_command(self, folder: Path, *command: str) -> list[str]:
        """A command that has this server for its names, in a mount namespace of its own."""
        settings = folder / "resolv.conf"
        settings.write_text(f"nameserver {self.host}\noptions timeout:10 attempts:1\n")
        script = f'mount --bind {settings} /etc/resolv.conf && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *command]

    def answer(self, question: bytes) -> bytes:
        """The answer to one question; the name ends with the first zero byte."""
        end = question.index(b"\0", 12) + 5
        kind = struct.unpack("!H", question[end - 4 : end - 2])[0]
        found = self.addresses if kind == _A else ()
        if kind == _A:
            self.asked.append(asyncio.get_running_loop().time())
        head = question[:2] + struct.pack("!HHHHH", _ANSWER, 1, len(found), 0, 0)
        records = b"".join(
            struct.pack("!HHHIH", _POINTER_TO_NAME, _A, _IN, 0, 4) + socket.inet_aton(address)
            for address in found
        )
        return head + question[12:end] + records


class _Questions(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # asyncio's own is not of the class that says what it can do.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._server.answer(data)
        asyncio.get_running_loop().call_later(self._server.delay_s, self._transport.sendto, answer, addr)
