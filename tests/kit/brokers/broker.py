"""A real Valkey for tests, as the local stack starts it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.brokers import valkey
from tests.kit.runs.local_run import wait_until


@contextmanager
def run_broker(folder: Path) -> Iterator[str]:
    """Runs a broker with its data in `folder`; gives its URL."""
    socket = valkey.choose_socket(folder)
    command = valkey.build_command(valkey.find_server())
    config = valkey.build_config(folder, socket)
    with (
        (folder / "broker.log").open("w") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdin is not None
            process.stdin.write(config)
            process.stdin.close()
            wait_until(socket.exists, 10, "the broker listens")
            yield valkey.build_broker_url(socket)
        finally:
            process.terminate()
