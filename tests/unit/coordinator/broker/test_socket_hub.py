import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from oku_coordinator.broker import socket_hub
from oku_coordinator.broker.socket_hub import SocketHub
from oku_core.broker.frames import CHALLENGE_BYTES, build_greeting, pack_message
from oku_core.broker.socket_url import open_unix_socket
from oku_core.messaging.signing import MessageKind, RejectedMessageError, Signer
from oku_core.process.supervision import Health, cancel_tasks

SIGNER = Signer(b"the key of these tests")


class Stage:
    """A hub that serves, and connections to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rejected: list[RejectedMessageError] = []
        self.received: list[tuple[MessageKind, bytes]] = []
        self.connected = asyncio.Event()
        self.hub = SocketHub(open_unix_socket(path), SIGNER, self.rejected.append)
        self.hub.open(lambda kind, body: self.received.append((kind, body)), self.connected.set)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """Connect, and read the challenge."""
        reader, writer = await asyncio.open_unix_connection(self._path)
        return reader, writer, await reader.readexactly(CHALLENGE_BYTES)

    async def greet(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect as the process b1 of a worker."""
        reader, writer, challenge = await self.connect()
        writer.write(build_greeting(SIGNER, challenge, "b1"))
        await self.connected.wait()
        return reader, writer


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A hub that serves meanwhile."""
    stage = Stage(tmp_path / "s")
    serving = asyncio.create_task(stage.hub.serve(Health("workers")))
    yield stage
    await cancel_tasks([serving])
    await asyncio.to_thread(stage.hub.close, 1.0)


async def test_a_connection_without_a_true_greeting_is_closed(stage: Stage) -> None:
    """Whatever it sends; each is counted."""
    message = pack_message(MessageKind.PROGRESS, SIGNER.seal(MessageKind.PROGRESS, b"{}"))
    for greeting in (
        build_greeting(SIGNER, b"another challenge", "b1"),
        build_greeting(Signer(b"the key of somebody else"), b"", "b1"),
        message,
        b"\xff" * 5,
        b"\x00\x00\xff\xff\x04",
    ):
        reader, writer, _ = await stage.connect()
        writer.write(greeting)
        assert await reader.read() == b""
        writer.close()
    assert len(stage.rejected) == 5
    assert stage.received == []
    assert not stage.connected.is_set()


async def test_a_connection_that_says_nothing_is_closed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not stay for ever."""
    monkeypatch.setattr(socket_hub, "GREETS_WITHIN_S", 0.01)
    reader, writer, _ = await stage.connect()
    assert await reader.read() == b""
    writer.close()


async def test_messages_go_to_one_process_or_to_all(stage: Stage) -> None:
    """From any thread; those for others are dropped."""
    reader, writer = await stage.greet()
    stage.hub.post([("b1", b"one"), ("b2", b"other"), ("", b"all")])
    assert await reader.readexactly(6) == b"oneall"
    await asyncio.to_thread(stage.hub.post, [("b1", b"two")])
    assert await reader.readexactly(3) == b"two"
    writer.close()


async def test_what_a_process_does_not_read_is_bounded(stage: Stage) -> None:
    """A message of any length is taken if none waits."""
    reader, writer = await stage.greet()
    writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # of a transport that reads, too
    piece = bytes(socket_hub.MOST_UNREAD // 4)
    stage.hub.post([("b1", piece * 8)] * 3 + [("b1", piece)] * 20)
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    stage.hub.post([("b1", b"end")])
    await asyncio.to_thread(stage.hub.close, 10.0)
    arrived = len(await reader.read())
    assert len(piece) * 8 <= arrived <= len(piece) * 8 + socket_hub.MOST_UNREAD
    writer.close()
