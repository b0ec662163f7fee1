"""What workers say of themselves, heard as a coordinator hears it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.runs.local_run import wait_until

from oku_coordinator.broker.listeners import ProgressListener
from oku_core.broker.celery_app import App
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health


@contextmanager
def listening(app: App) -> Iterator[list[Progress]]:
    """Gather the progress of workers meanwhile."""
    heard: list[Progress] = []
    may_decode = threading.Event()
    may_decode.set()
    listener = ProgressListener(app, Health("progress"), heard.extend, may_decode)
    listener.start()
    wait_until(lambda: listener.is_connected, 10, "the listener is connected")
    try:
        yield heard
    finally:
        listener.end()
        listener.join(5)


def find_incarnation(app: App) -> str:
    """The process of the worker that is heard first."""
    with listening(app) as heard:
        wait_until(lambda: bool(heard), 20, "a worker speaks")
        return heard[0].incarnation
