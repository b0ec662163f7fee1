"""The key that messages are signed with in tests, for processes that read it from their environment, too."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

MESSAGE_KEY = b"for tests, and for tests alone"


@contextmanager
def exported_message_key() -> Iterator[None]:
    """Every `oku coordinator` and `oku worker` that is started in the block has it."""
    before = os.environ.get("OKU_MESSAGE_KEY")
    os.environ["OKU_MESSAGE_KEY"] = MESSAGE_KEY.decode()
    try:
        yield
    finally:
        if before is None:
            del os.environ["OKU_MESSAGE_KEY"]
