"""Listeners that end while messages come, over the real broker."""

import threading
import time
from pathlib import Path

from celery import Celery
from tests.kit.broker import run_broker

from oku_coordinator.listeners import ReportListener
from oku_core.lease import Claim
from oku_core.messaging import build_app, send_message

_MESSAGES = 300
_EVERY_S = 0.02


def test_a_listener_that_ends_leaves_no_message_behind(tmp_path: Path) -> None:
    """What comes meanwhile is for the next one: a coordinator is replaced in order, and no report is lost."""
    sent = [f"lease-{number}" for number in range(_MESSAGES)]
    heard: list[str] = []
    with run_broker(tmp_path) as url:
        app = build_app(url)

        def send() -> None:
            for lease in sent:
                send_message(app, Claim(lease=lease, execution="e", worker="w", boot="b", at=0.0))
                time.sleep(_EVERY_S)

        sender = threading.Thread(target=send)
        sender.start()
        while sender.is_alive():
            listen(app, heard, 0.2)
        deadline = time.monotonic() + 10
        while len(set(heard)) < _MESSAGES and time.monotonic() < deadline:
            listen(app, heard, 1.0)
    assert sorted(set(heard)) == sorted(sent)


def listen(app: Celery, heard: list[str], seconds: float) -> None:
    """Listen for a while, as a coordinator does, and end in order."""
    may_decode = threading.Event()
    may_decode.set()
    listener = ReportListener(
        app,
        lambda messages: heard.extend(message.lease for message in messages),
        may_decode,
    )
    listener.start()
    time.sleep(seconds)
    listener.end()
    listener.join(10)
    assert not listener.is_alive()
