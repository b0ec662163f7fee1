"""Cases in which leases could be sized wrongly: unknown rates, unequal workers, few requests, many holes."""

import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from oku_benchmarks.cases.lease_cases.lease_case import Finding, LeaseCase, Site, open_site
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.counting_server import SLOW_ADDRESS, Behaviour
from oku_benchmarks.stacks.counting_target import CountingTarget, find_duration_s, find_seconds
from oku_benchmarks.stacks.real_stack import RealStack
from oku_core.spec.values.delay import parse_delay

_LONGEST_S = 30.0
_MENDED_S = 5.0
_LOOK_S = 0.2
_FULL_GOAL = 0.97
_IDEAL_GOAL = 1.1
_HOLES_GOAL = 1.2


class _Leases(NamedTuple):
    """What was seen of the open leases of a run since its first answer.

    Attributes:
        longest_s: the longest work that one had left when the first 5 s were over.
        mended_s: how long it took until none had more than 30 s of work left.
    """

    longest_s: float
    mended_s: float

    @property
    def text(self) -> str:
        return (
            f"leases of up to {self.longest_s:.0f} s of work after 5 s;"
            f" none above 30 s after {self.mended_s:.1f} s"
        )

    @property
    def is_met(self) -> bool:
        return self.longest_s <= _LONGEST_S and self.mended_s <= _MENDED_S


def _watch_leases(stack: RealStack, run: str, watch_s: float, rate_rps: float) -> _Leases:
    """Look at the leases of the only worker, which does so many requests a second."""
    began, longest_s, mended_s = time.monotonic(), 0.0, 0.0
    while (passed_s := time.monotonic() - began) < watch_s:
        left_s = max((lease.left for lease in stack.ledger.list_open_leases(run)), default=0) / rate_rps
        if left_s > _LONGEST_S:
            mended_s = passed_s
        if passed_s > _MENDED_S:
            longest_s = max(longest_s, left_s)
        time.sleep(_LOOK_S)
    return _Leases(longest_s, mended_s)


def _measure_after_fast(checkout: Checkout, folder: Path) -> Finding:
    rate_rps, window = 40.0, 4
    with (
        open_site(checkout, folder, Behaviour(indices=40_000, delay="5ms")) as site,
        CountingTarget(folder / "slow", Behaviour(indices=100_000, delay="100ms")) as slow,
    ):
        site.stack.start_workers("worker-1")
        site.finish(site.start("fast", 40_000, 100, "--engine", "httptools"), 120)
        site.stack.wait_for_run("fast")
        command = site.stack.submit(
            "slow", "run", "--url", slow.url, "--requests", "100000", "--concurrency", str(window)
        )
        run = site.stack.wait_for_run("slow")
        slow.wait_for_answers(1)
        leases = _watch_leases(site.stack, run, 20, rate_rps)
        command.child.kill()
    return Finding(text=leases.text, is_met=leases.is_met)


def _measure_in_step(step_s: float, requests: int, checkout: Checkout, folder: Path) -> Finding:
    window = 100
    with open_site(checkout, folder, Behaviour(indices=requests, step_s=step_s)) as site:
        site.stack.start_workers("worker-1")
        command = site.start("run", requests, window, "--timeout", f"{3 * step_s}s")
        run = site.stack.wait_for_run("run")
        site.target.wait_for_answers(1)
        leases = _watch_leases(site.stack, run, 0.6 * requests / window * step_s, window / step_s)
        site.finish(command, 4 * requests / window * step_s)
        seconds = find_seconds(site.target.read(), requests, window)
    return Finding(
        text=f"{leases.text}; full in {seconds.full_share:.1%} of {len(seconds.working)} s",
        is_met=leases.is_met and seconds.full_share >= _FULL_GOAL,
    )


def _measure_fleet(checkout: Checkout, folder: Path) -> Finding:
    fast, slow, window, requests = "100ms", "2s", 40, 100_000
    each = 4
    behaviour = Behaviour(indices=requests, delay=fast, slow_delay=slow)
    rate_rps = sum(each * window / parse_delay(delay).mean_s for delay in (fast, slow))
    ideal_s = requests / rate_rps
    with open_site(checkout, folder, behaviour) as site:
        site.stack.start_workers(*(f"fast-{i}" for i in range(each)))
        site.stack.start_workers(*(f"slow-{i}" for i in range(each)), flags=("--local-address", SLOW_ADDRESS))
        site.finish(site.start("run", requests, window, "--workers", str(2 * each)), 6 * ideal_s)
        took_s = find_duration_s(site.target.read())
    return Finding(
        text=f"{took_s:.1f} s, {took_s / ideal_s:.2f} times the ideal {ideal_s:.1f} s",
        is_met=took_s <= _IDEAL_GOAL * ideal_s,
    )


def _measure_few_requests(checkout: Checkout, folder: Path) -> Finding:
    requests, window, workers = 2_000, 500, 8
    with open_site(checkout, folder, Behaviour(indices=requests, delay="500ms")) as site:
        site.stack.start_workers(*(f"worker-{i}" for i in range(workers)))
        account = site.finish(site.start("run", requests, window, "--workers", str(workers)), 120)
    parts = sorted(worker.requests for worker in account.workers if worker.requests)
    return Finding(
        text=f"{len(parts)} of {workers} workers took part, with {parts[0]} to {parts[-1]} requests each",
        is_met=len(parts) == workers,
    )


def _measure_holes(checkout: Checkout, folder: Path) -> Finding:
    window = 5_000
    behaviour = Behaviour(indices=3 * window, delay="500ms..3s")
    with open_site(checkout, folder, behaviour) as site:
        site.stack.start_workers("worker-1")
        command = site.start("run", 3 * window, window, "--grace", "0s")
        run = site.stack.wait_for_run("run")
        site.target.wait_for_answers(window)
        checkout.call("pause", run, *site.stack.where)
        command.wait(60)
        pieces, pending = site.stack.ledger.count_pending(run)
        # Both begin with a worker that has no connection yet.
        received = _restart_worker(site)
        site.stack.submit("resume", "resume", run).wait(180)
        resumed_s = find_duration_s(site.target.read(), received)
        received = _restart_worker(site)
        site.start("whole", pending, window).wait(600)
        whole_s = find_duration_s(site.target.read(), received)
    return Finding(
        text=(
            f"{pending:,} requests in {pieces:,} pieces took {resumed_s:.1f} s,"
            f" {resumed_s / whole_s:.2f} times the {whole_s:.1f} s of as many in one"
        ),
        is_met=resumed_s <= _HOLES_GOAL * whole_s,
    )


def _restart_worker(site: Site) -> int:
    """Start the worker anew; how many requests the target has received by then."""
    site.stack.kill("worker-1")
    site.stack.start_workers("worker-1")
    return site.target.read_last().received


_SIZE_GOAL = "no lease has more than 30 s of its worker's work; a wrong first guess is mended within 5 s"

LEASE_SIZES = {
    "slow-after-fast": LeaseCase(
        text="a run of 40/s after one of thousands a second, same coordinator and worker",
        goal=_SIZE_GOAL,
        measure=_measure_after_fast,
    ),
    "in-step": LeaseCase(
        text="100 in flight, all answered together every 3 s, 2,000 requests",
        goal=f"{_SIZE_GOAL}; the window is full",
        measure=partial(_measure_in_step, 3.0, 2_000),
    ),
    "in-step-30s": LeaseCase(
        text="100 in flight, all answered together every 30 s, 800 requests",
        goal=f"{_SIZE_GOAL}; the window is full",
        measure=partial(_measure_in_step, 30.0, 800),
        is_long=True,
    ),
    "fleet": LeaseCase(
        text="4 workers at 400/s and 4 at 20/s, 100,000 requests",
        goal="at most 1.1 times the ideal time",
        measure=_measure_fleet,
    ),
    "few-requests": LeaseCase(
        text="`--requests 2000 --concurrency 500 --workers 8`",
        goal="all workers take part",
        measure=_measure_few_requests,
    ),
    "holes": LeaseCase(
        text="a run that was paused at once is resumed with thousands of holes, answers after 0.5 to 3 s",
        goal="at most 1.2 times the time of as many requests in one piece",
        measure=_measure_holes,
    ),
}
