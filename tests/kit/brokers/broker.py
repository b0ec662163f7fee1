"""A real Valkey for tests."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.brokers import valkey
from tests.kit.runs.local_run import wait_until


class RealBroker:
    """A broker that may be killed and started again on its data in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = valkey.choose_socket(folder)
        self.url = valkey.build_broker_url(self._socket)
        self._process: subprocess.Popen[str]

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._socket.unlink(missing_ok=True)
        with (self._folder / "broker.log").open("a") as log:
            self._process = subprocess.Popen(
                valkey.build_command(valkey.find_server()),
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
            )  # fmt: skip
        assert self._process.stdin is not None
        with self._process.stdin as given:
            given.write(valkey.build_config(self._folder, self._socket))
        wait_until(self._socket.exists, 10, "the broker listens")

    def kill(self) -> None:
        """Kill it with -9."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


@contextmanager
def run_broker(folder: Path) -> Iterator[str]:
    """Runs a broker with its data in `folder`; gives its URL."""
    broker = RealBroker(folder)
    broker.start()
    try:
        yield broker.url
    finally:
        broker.end()
