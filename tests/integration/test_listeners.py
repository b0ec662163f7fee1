"""Listeners that end while messages come, and that lose their connections, over the real broker."""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kombu.exceptions import OperationalError
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.runs.local_run import wait_until
from tests.kit.servers.front import Front

from oku_coordinator.broker.listeners import CheckpointListener, ProgressListener
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageFault
from oku_core.broker.celery_app import PROGRESS_EVENT, App, build_app
from oku_core.broker.sending import send_checkpoints
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch
from oku_core.messaging.codec import seal_progress
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health

_MESSAGES = 300
_EVERY_S = 0.02


def test_a_listener_that_ends_leaves_no_message_behind(tmp_path: Path) -> None:
    """The next listener gets what comes meanwhile: no checkpoint is lost when a coordinator is replaced.

    It gets it at once, and not only when the broker delivers again what nobody has acknowledged.
    """
    sent = [f"lease-{number}" for number in range(_MESSAGES)]
    heard: list[str] = []
    with run_broker(tmp_path) as url:
        app = build_app(url, MESSAGE_KEY)

        def send() -> None:
            for lease in sent:
                send_checkpoints(app, build_batch(lease))
                time.sleep(_EVERY_S)

        sender = threading.Thread(target=send)
        sender.start()
        while sender.is_alive():
            listen(app, heard, 0.2)
        deadline = time.monotonic() + 3
        while len(set(heard)) < _MESSAGES and time.monotonic() < deadline:
            listen(app, heard, 1.0)
    assert sorted(set(heard)) == sorted(sent)


@pytest.mark.parametrize("by", ["socket", "port"])
def test_an_idle_listener_seldom_looks_for_what_is_to_be_delivered_again(tmp_path: Path, by: str) -> None:
    """That takes four commands each time, beside a load that wants all processors; but it does look."""
    with run_broker(tmp_path) as url, Front(urlsplit(url).path) as front:
        heard: list[str] = []
        app = build_app(url if by == "socket" else f"redis://127.0.0.1:{front.port}/0", MESSAGE_KEY)
        with build_app(url, MESSAGE_KEY).connection_for_write() as connection:
            client = connection.default_channel.client
            listen(app, heard, 6.0)
            looks = client.info("commandstats")["cmdstat_zrange"]["calls"]
    assert 1 <= looks <= 8


@pytest.mark.parametrize(("fault", "within_s"), [("cut", 5.0), ("silent", 10.0)])
def test_a_listener_that_loses_its_connection_receives_again(
    tmp_path: Path, fault: str, within_s: float
) -> None:
    """It is hung up on, as a slow subscriber is, or never told, as when a node dies."""
    may_decode = threading.Event()
    may_decode.set()
    told: dict[str, float] = {}

    def note(name: str) -> None:
        told[name] = time.monotonic()

    with run_broker(tmp_path) as url, Front(urlsplit(url).path) as front, speaking(url):
        app = build_app(f"redis://127.0.0.1:{front.port}/0", MESSAGE_KEY)
        listeners = [
            ProgressListener(app, Health("progress"), lambda _: note("progress"), may_decode),
            CheckpointListener(app, Health("checkpoints"), lambda _: note("checkpoints")),
        ]
        for listener in listeners:
            listener.start()
        wait_until(lambda: len(told) == len(listeners), 10, "both hear")
        if fault == "cut":
            with build_app(url, MESSAGE_KEY).connection_for_write() as connection:
                for kind in ("pubsub", "normal"):
                    connection.default_channel.client.client_kill_filter(_type=kind, skipme=True)
        else:
            front.fall_silent()
        time.sleep(0.5)  # what was on its way is heard by now
        told.clear()
        wait_until(lambda: len(told) == len(listeners), within_s, "both hear again")
        for listener in listeners:
            listener.end()
        for listener in listeners:
            listener.join(15)
            assert not listener.is_alive()


def test_a_broker_that_refuses_is_told_from_one_that_is_away(tmp_path: Path) -> None:
    """A broker with a full disk answers, and says why it delivers nothing."""
    stored: list[Sequence[CheckpointBatch]] = []
    with run_broker(tmp_path) as url:
        app = build_app(url, MESSAGE_KEY)
        listener = CheckpointListener(app, Health("checkpoints"), stored.append)
        with build_app(url, MESSAGE_KEY).connection_for_write() as connection:
            client = connection.default_channel.client
            client.execute_command("REPLICAOF", "127.0.0.1", "1")
            listener.start()
            wait_until(lambda: bool(listener.refusal), 10, "the refusal is known")
            assert "read only replica" in listener.refusal
            client.execute_command("REPLICAOF", "NO", "ONE")
        send_checkpoints(app, build_batch("r1/1"))
        wait_until(lambda: bool(stored), 10, "a checkpoint is heard")
        assert (listener.refusal, listener.is_connected) == ("", True)
        listener.end()
        listener.join(15)


def test_a_ledger_that_cannot_be_written_is_not_blamed_on_the_broker(tmp_path: Path) -> None:
    """Its messages are stored, once, when the ledger can be written again."""
    stored: list[Sequence[CheckpointBatch]] = []
    health = Health("checkpoints", longest_pause_s=0.1)
    is_full = threading.Event()
    is_full.set()

    def store(batches: Sequence[CheckpointBatch]) -> None:
        if is_full.is_set():
            raise StorageError(StorageFault.DISK_FULL, "database or disk is full")
        stored.append(batches)

    with run_broker(tmp_path) as url:
        app = build_app(url, MESSAGE_KEY)
        listener = CheckpointListener(app, health, store)
        listener.start()
        send_checkpoints(app, build_batch("r1/1"))
        wait_until(lambda: bool(health.trouble), 10, "it could not be stored")
        for _ in range(20):
            assert (listener.is_connected, listener.refusal) == (True, "")
            time.sleep(0.01)
        is_full.clear()
        wait_until(lambda: bool(stored), 20, "it is stored")
        listener.end()
        listener.join(15)
    assert [[batch.checkpoints[0].lease for batch in batches] for batches in stored] == [["r1/1"]]


def test_what_is_said_after_a_listener_has_connected_is_heard(tmp_path: Path) -> None:
    """Workers are asked then whether they are here, and no answer may be lost."""
    may_decode = threading.Event()
    may_decode.set()
    with run_broker(tmp_path) as url:
        app = build_app(url, MESSAGE_KEY)
        for number in range(10):
            worker = f"w{number}"
            heard: queue.SimpleQueue[Sequence[Progress]] = queue.SimpleQueue()
            listener = ProgressListener(
                app, Health("progress"), heard.put, may_decode, partial(speak_once, url, worker)
            )
            listener.start()
            assert [progress.worker for progress in heard.get(timeout=10)] == [worker]
            listener.end()
            listener.join(15)


def build_batch(lease: str) -> CheckpointBatch:
    """The message of a worker that has taken nothing of a lease."""
    checkpoint = Checkpoint(lease=lease, sequence=1, done=0, end=1)
    return CheckpointBatch(worker="w", incarnation="b", checkpoints=[checkpoint])


def speak_once(url: str, worker: str) -> None:
    """Send one progress."""
    app = build_app(url, MESSAGE_KEY)
    progress = seal_progress(app.signer, Progress(worker=worker, incarnation="b", at=0.0))
    with app.connection_for_write() as connection:
        app.events.Dispatcher(connection).send(PROGRESS_EVENT, progress=progress)


@contextmanager
def speaking(url: str) -> Iterator[None]:
    """Send progress and checkpoints meanwhile, ten times a second."""
    ending = threading.Event()

    def speak() -> None:
        app = build_app(url, MESSAGE_KEY)
        progress = seal_progress(app.signer, Progress(worker="w", incarnation="b", at=0.0))
        while not ending.wait(0.1):
            with suppress(OperationalError, ConnectionError), app.connection_for_write() as connection:
                app.events.Dispatcher(connection).send(PROGRESS_EVENT, progress=progress)
            with suppress(OperationalError):
                send_checkpoints(app, build_batch("l"))

    speaker = threading.Thread(target=speak)
    speaker.start()
    try:
        yield
    finally:
        ending.set()
        speaker.join()


def listen(app: App, heard: list[str], seconds: float) -> None:
    """Listen for a while, as a coordinator does, and end in order."""
    listener = CheckpointListener(
        app,
        Health("checkpoints"),
        lambda batches: heard.extend(batch.checkpoints[0].lease for batch in batches),
    )
    listener.start()
    time.sleep(seconds)
    listener.end()
    listener.join(10)
    assert not listener.is_alive()
