"""A worker beside those of a local stack, whose broker wants a password that is in no file."""

import re
from pathlib import Path

from tests.kit.runs.local_run import OKU, LocalRun

_BROKER_URL = re.compile(rb"redis\+socket://workers:[\w-]+@[\w%./-]+valkey\.sock")  # own text: of a stack


def build_guest(run: LocalRun, name: str) -> list[str]:
    """The command of one; the run was started by root, or with `OKU_DEBUGGABLE` set."""
    key = ("--message-key-file", str(run.data_dir / "message.key"))
    return [*OKU, "worker", "--broker-url", _find_broker_url(run.pid("worker-1")), "--name", name, *key]


def _find_broker_url(pid: int) -> str:
    """Find the URL of the broker in the memory of a worker."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            area, rights, *_ = line.split()
            if rights.startswith("rw") and "[v" not in line:
                start, stop = (int(number, 16) for number in area.split("-"))
                memory.seek(start)
                if found := _BROKER_URL.search(memory.read(stop - start)):
                    return found[0].decode()
    raise AssertionError("the worker has no URL of the broker")
