"""A worker in a process of its own whose memory is measured: `python -m tests.kit.workers.measured_worker`.

It reads a spec, how many requests to make first to get warm and how many to measure from standard input, as
JSON, and writes what came of them and by how much its peak memory has grown.
"""

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.requirement import miss
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Spec, decode_spec, encode_spec

_PATIENCE_S = 60.0
_OWN = Path("/proc/self")


@dataclass(frozen=True)
class Measurement:
    """What came of the measured requests.

    Attributes:
        outcomes: how often each of them occurred.
        growth_kib: by how much the peak of the worker's memory has grown.
        bytes_received: bytes of bodies.
    """

    outcomes: dict[str, int]
    growth_kib: int
    bytes_received: int


COMMAND = (sys.executable, "-m", "tests.kit.workers.measured_worker")


async def measure(
    spec: Spec, requests: int, *, warm_up: int = 0, command: Sequence[str] = COMMAND
) -> Measurement:
    """Let a process make `warm_up` requests, and then `requests` that are measured."""
    if sys.platform != "linux":
        miss("the memory of a process is measured with /proc, which Linux has")
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    order = json.dumps(
        {"spec": encode_spec(spec).decode(), "requests": requests, "warm_up": warm_up}
    ).encode()
    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer, complaints = await process.communicate(order)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, complaints.decode()
    return Measurement(**json.loads(answer))


async def _run_order(order: dict[str, Any]) -> dict[str, Any]:
    spec = decode_spec(order["spec"])
    worker = EngineWorker()
    if order["warm_up"]:
        await worker.run(spec, order["warm_up"], start=1_000_000)
    _OWN.joinpath("clear_refs").write_text("5")  # the peak begins anew
    before_kib = _read_peak_kib()
    account = await worker.run(spec, order["requests"])
    grown_kib = _read_peak_kib() - before_kib
    await asyncio.to_thread(worker.close)
    return {
        "outcomes": count(account), "growth_kib": grown_kib, "bytes_received": account.part.bytes_received
    }  # fmt: skip


def _read_peak_kib() -> int:
    """The largest memory of this process; what `getrusage` tells may be that of the one that started it."""
    peak = re.search(r"VmHWM:\s*(\d+) kB", _OWN.joinpath("status").read_text())
    assert peak is not None
    return int(peak[1])


if __name__ == "__main__":
    json.dump(asyncio.run(_run_order(json.load(sys.stdin))), sys.stdout)
