"""Cases of what a coordinator does with many workers; they are simulated, it, broker and time are real."""

import asyncio
import json
import time
from pathlib import Path

from oku_benchmarks.cases.lease_cases.lease_case import Finding, LeaseCase
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.real_stack import RealStack, open_stack
from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint

_DEAL_GOAL_S = 0.2
_AWAY_S = 0.02
_STAND_GOAL_MS = 100.0
_READY_S = 60.0
_NOTICED_S = 40.0
_RATE_RPS = 40
_CONCURRENCY = 40


def _start_fleet(stack: RealStack, name: str, workers: int) -> Path:
    """Start simulated workers; the file in which they say at their end what they did."""
    said = stack.folder / f"{name}.json"
    arguments = (stack.broker_url, str(workers), str(_RATE_RPS), str(said), name)
    stack.start_script(name, "oku_benchmarks.simulation.simulated_workers", *arguments)
    return said


async def _submit(stack: RealStack) -> str:
    # Nobody asks this address: simulated workers send nothing.
    values = {"requests": 10**9, "url": "http://127.0.0.1:9/{i}", "concurrency": _CONCURRENCY}
    async with Client(Endpoint(stack.url, stack.token)) as client:
        return await client.submit(values)


async def _count_workers(stack: RealStack, run: str) -> int:
    async with Client(Endpoint(stack.url, stack.token)) as client:
        async for item in client.follow(run):
            if (workers := getattr(item, "workers", None)) is not None:
                return int(workers)
    raise BenchmarkError("the coordinator does not say how many workers live")


async def _wait_for_workers(stack: RealStack, run: str, workers: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while (living := await _count_workers(stack, run)) != workers:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{living:,} workers live, not {workers:,}, after {timeout_s:.0f} s")
        await asyncio.sleep(1.0)


def _measure_far_broker(checkout: Checkout, folder: Path) -> Finding:
    workers = 100
    with open_stack(checkout, folder / "stack") as stack:
        stack.start_coordinator(stack.start_slow_link(_AWAY_S))
        said = _start_fleet(stack, "fleet", workers)
        # All of them have joined and been heard before there is a run.
        time.sleep(5.0)
        asyncio.run(_submit(stack))
        time.sleep(5.0)
        stack.end("fleet")
    taken = sorted(at for _, at in json.loads(said.read_text())["taken"])
    if len(taken) < workers:
        raise BenchmarkError(f"only {len(taken)} leases were taken")
    dealt_s = taken[workers - 1] - taken[0]
    return Finding(text=f"the first 100 leases within {dealt_s:.2f} s", is_met=dealt_s <= _DEAL_GOAL_S)


def _measure_half_dies(checkout: Checkout, folder: Path) -> Finding:
    half, said = 1_000, folder / "probe.json"
    with open_stack(checkout, folder / "stack") as stack:
        stack.start_coordinator()
        for name in ("living", "dying"):
            _start_fleet(stack, name, half)
        run = asyncio.run(_submit(stack))
        asyncio.run(_wait_for_workers(stack, run, 2 * half, _READY_S))
        time.sleep(10.0)
        stack.start_script("probe", "oku_benchmarks.simulation.probe", stack.url, str(said))
        time.sleep(2.0)
        stack.kill("dying")
        asyncio.run(_wait_for_workers(stack, run, half, _NOTICED_S))
        # Until the last of their leases is taken back.
        time.sleep(3.0)
        stack.end("probe")
    figures = json.loads(said.read_text())
    return Finding(
        text=(
            f"the longest answer took {figures['longest_ms']:,.0f} ms, 99 % at most"
            f" {figures['p99_ms']:,.0f} ms"
        ),
        is_met=figures["longest_ms"] <= _STAND_GOAL_MS,
    )


MANY_WORKERS = {
    "far-broker": LeaseCase(
        text="100 leases for 100 workers are dealt over a broker whose answers take 20 ms",
        goal="within 0.2 s",
        measure=_measure_far_broker,
        is_simulated=True,
    ),
    "half-dies": LeaseCase(
        text="1,000 of 2,000 workers die at once",
        goal="the coordinator's event loop never stands for more than 0.1 s",
        measure=_measure_half_dies,
        is_simulated=True,
    ),
}
