"""A run under abuse: coordinator, worker and delay server as processes, attacked from loopback.

What is looked at meanwhile: memory and log of the attacked process, and how long its probe takes.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import exported_message_key
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.faults import attacker
from tests.kit.servers.delay_server import DelayServer
from tests.kit.workers.worker_process import run_worker

_PROBE_EVERY_S = 0.2
_PROBE_GIVES_UP_S = 60.0
_ATTACKER_ENDS_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """What was attacked.

    Args:
        probe_url: what must go on answering.
        pid: of the process.
        log: its file.
    """

    probe_url: str
    pid: int
    log: Path


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What came of it.

    Args:
        worst_probe_s: the longest that the probe took.
        probes: how often it was asked.
        most_files: how many files, connections among them, it had open at most.
        memory_mb: by how much resident memory grew at most.
        log_mb: by how much the log grew.
        attacks: what each attacker says that it did.
    """

    worst_probe_s: float
    probes: int
    most_files: int
    memory_mb: float
    log_mb: float
    attacks: dict[str, dict[str, int]]


@dataclass(frozen=True, kw_only=True)
class Site:
    """Everything that a run needs.

    Args:
        api: of the coordinator.
        coordinator: as a thing to attack.
        server: as a thing to attack, and the target of runs.
        target: the URL of requests.
    """

    api: CoordinatorApi
    coordinator: Attacked
    server: Attacked
    target: str


@contextmanager
def run_site(folder: Path, *server_flags: str) -> Iterator[Site]:
    """A broker, a coordinator, a worker and a delay server with these flags until the end of the block."""
    with ExitStack() as stack:
        stack.enter_context(exported_message_key())
        broker_url = stack.enter_context(run_broker(folder))
        (folder / "server").mkdir()
        server = DelayServer(folder / "server", "--delay", "5ms", *server_flags)
        stack.callback(server.end)
        data_dir = folder / "coordinator"
        flags = ("--server-url", server.url)
        api = stack.enter_context(run_coordinator(broker_url, data_dir, *flags))
        stack.enter_context(run_worker(broker_url, log=folder / "worker.log"))
        yield Site(
            api=api,
            coordinator=Attacked(
                probe_url=f"{api.url}/healthz",
                pid=_find_listener(api.url),
                log=data_dir / "coordinator.log",
            ),
            server=Attacked(
                probe_url=f"{server.url}/-/healthz", pid=server.process.pid, log=folder / "server" / "log"
            ),
            target=f"{server.url}/{{i}}",
        )


def abuse(attacked: Attacked, seconds: float) -> Damage:
    """Carry out all attacks at once for some seconds.

    Args:
        attacked: what is attacked.
        seconds: how long.
    """
    parts = urlsplit(attacked.probe_url)
    log_bytes, memory_mb = attacked.log.stat().st_size, read_rss_mb(attacked.pid)
    processes = {
        kind: subprocess.Popen(
            [sys.executable, attacker.__file__, kind, str(parts.hostname), str(parts.port), str(seconds)],
            stdout=subprocess.PIPE,
        )
        for kind in attacker.ATTACKS
    }
    try:
        probes_s, most_mb, most_files = [], memory_mb, 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            probes_s.append(_probe(attacked.probe_url))
            most_mb = max(most_mb, read_rss_mb(attacked.pid))
            most_files = max(most_files, count_open_files(attacked.pid))
            time.sleep(_PROBE_EVERY_S)
        outputs = {
            kind: process.communicate(timeout=_ATTACKER_ENDS_S)[0] for kind, process in processes.items()
        }
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return Damage(
        worst_probe_s=max(probes_s),
        probes=len(probes_s),
        most_files=most_files,
        memory_mb=most_mb - memory_mb,
        log_mb=(attacked.log.stat().st_size - log_bytes) / 1e6,
        attacks={kind: json.loads(output) for kind, output in outputs.items()},
    )


def read_rss_mb(pid: int | str) -> float:
    """Resident memory of a process now, in MB of 10**6 bytes; `self` is this one."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024 / 1e6


def count_open_files(pid: int) -> int:
    """How many files, connections among them, a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _probe(url: str) -> float:
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=_PROBE_GIVES_UP_S) as response:
        assert response.status == 200
    return time.monotonic() - began


def _find_listener(url: str) -> int:
    """The process that listens where a URL points to."""
    port = f"{urlsplit(url).port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    [inode] = [row[9] for row in rows if row[1].endswith(f":{port}") and row[3] == "0A"]
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()) == f"socket:[{inode}]":
                return int(link.parts[2])
        except OSError:
            continue
    raise AssertionError(f"nobody listens at {url}")
