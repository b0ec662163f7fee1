"""`oku worker` processes for tests, as a user starts them."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kit.runs.local_run import OKU

Process = subprocess.Popen[bytes]


@contextmanager
def run_worker(
    broker_url: str, *flags: str, name: str = "w", log: Path | None = None, prefix: Sequence[str] = ()
) -> Iterator[Process]:
    """Runs a worker, which is killed after the block.

    Args:
        broker_url: of the real broker.
        flags: of `oku worker`.
        name: of the worker.
        log: what it writes to standard error; without a file that of the test.
        prefix: a command that starts the command behind it.
    """
    with ExitStack() as stack:
        output = stack.enter_context(log.open("w")) if log else None
        command = [*prefix, *OKU, "worker", "--broker-url", broker_url, "--name", name, *flags]
        process = stack.enter_context(subprocess.Popen(command, stderr=output))
        stack.callback(process.kill)
        yield process
