"""The worker's end of a transport, as a process of its own: `python transport_peer.py URL`.

It prints what arrives, a JSON array in each line, and sends what it is asked for by lines of its standard
input: `checkpoint NAME`, `progress NAME`, `end`.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Control, Order, Stop
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import RejectedMessageError
from oku_workers.broker.worker_transport import WorkerTransport, build_worker_transport
from oku_workers.settings import WorkerIdentity

INCARNATION = "b1"
_ROOT = Path(__file__).parents[3]
_PATIENCE_S = 20.0


class TransportPeer:
    """Such a process until the end of the block."""

    def __init__(self, broker_url: str, key: bytes = MESSAGE_KEY) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, broker_url, key.hex()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=_ROOT,
        )  # fmt: skip
        self._arrived: SimpleQueue[list[str]] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        """It has been started."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill it if it has not ended."""
        self.process.kill()
        self.process.communicate()

    def ask(self, *words: str) -> None:
        """Have it send something, or end."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def next(self, timeout_s: float = _PATIENCE_S) -> list[str]:
        """What arrives next; fails if nothing does."""
        return self._arrived.get(timeout=timeout_s)

    def wait_for(self, what: str) -> None:
        """Pass over what arrives, up to a kind."""
        while self.next()[0] != what:
            pass

    def find_next(self, timeout_s: float) -> list[str] | None:
        """What arrives next; None if nothing does."""
        try:
            return self.next(timeout_s)
        except Empty:
            return None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._arrived.put(json.loads(line))


class _Inbox:
    def on_connected(self) -> None:
        _tell("connected")

    def on_lost(self) -> None:
        _tell("lost")

    def take_leases(self, read: Callable[[], LeaseBatch]) -> None:
        try:
            _tell("leases", read().run)
        except RejectedMessageError as error:
            _reject(error)

    def take_order(self, read: Callable[[], Order]) -> None:
        try:
            order = read()
        except RejectedMessageError as error:
            _reject(error)
            return
        match order:
            case Stop():
                _tell("stop", order.run)
            case Control():
                _tell("control", *sorted(order.confirmed)[:1])
            case _:
                _tell("order")


def _tell(*what: str) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _reject(error: RejectedMessageError) -> None:
    _tell("rejected", str(error.rejection))


def _obey(transport: WorkerTransport) -> None:
    with transport.open_progress_channel() as channel:
        for line in sys.stdin:
            what, *names = line.split()
            if what == "end":
                transport.end()
                return
            try:
                if what == "progress":
                    channel.send(Progress(worker=names[0], incarnation=INCARNATION, at=1.0))
                else:
                    checkpoint = Checkpoint(lease=names[0], sequence=1, done=0, end=0)
                    batch = CheckpointBatch(worker="w", incarnation=INCARNATION, checkpoints=[checkpoint])
                    transport.send_checkpoints(batch)
            except transport.passing as error:
                _tell("failed", type(error).__name__)


def _main() -> int:
    worker = WorkerIdentity("w", INCARNATION)
    transport = build_worker_transport(sys.argv[1], bytes.fromhex(sys.argv[2]), worker, _reject)
    threading.Thread(target=_obey, args=(transport,), daemon=True).start()
    return transport.run(_Inbox(), lambda: None, lambda: _tell("ready"))


if __name__ == "__main__":
    sys.exit(_main())
