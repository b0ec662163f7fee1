"""Hears the heartbeats of workers over the real broker, as the coordinator does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from oku_core.broker.celery_app import PROGRESS_EVENT, App
from oku_core.messaging.codec import decode_progress
from oku_core.messaging.progress import Progress

_PATIENCE_S = 15.0


@contextmanager
def hear_workers(app: App) -> Iterator[dict[str, Progress]]:
    """The newest progress of each worker, by name; it listens until the block ends."""
    heard: dict[str, Progress] = {}
    is_listening, is_ending = threading.Event(), threading.Event()

    def take(event: dict[str, Any]) -> None:
        progress = decode_progress(app.signer, msgspec.json.encode({"progress": event["progress"]}))
        heard[progress.worker] = progress

    def listen() -> None:
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={PROGRESS_EVENT: take})
            with receiver.consumer_context(wakeup=False) as (listening, _, _):
                is_listening.set()
                while not is_ending.is_set():
                    try:
                        listening.drain_events(timeout=0.2)
                    except TimeoutError:
                        continue

    ear = threading.Thread(target=listen, daemon=True)
    ear.start()
    assert is_listening.wait(_PATIENCE_S)
    yield heard
    is_ending.set()
    ear.join()
