"""Cases of what a user asks for: to begin with all workers, to cancel at once, a series that adds up."""

import time
from pathlib import Path

from oku_benchmarks.cases.lease_cases.lease_case import Finding, LeaseCase, open_site
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.counting_server import Behaviour

_LATE_S = 5.0
_NOW_S = 5.0


def _measure_late_workers(checkout: Checkout, folder: Path) -> Finding:
    requests, workers = 8_000, ("worker-1", "worker-2", "worker-3")
    flags = ("--start-within", "30s") if checkout.has("run", "--start-within") else ()
    with open_site(checkout, folder, Behaviour(indices=requests, delay="100ms")) as site:
        site.stack.start_workers(workers[0])
        command = site.start("run", requests, 100, "--workers", str(len(workers)), *flags)
        time.sleep(_LATE_S)
        early = site.target.read_last().received
        site.stack.start_workers(*workers[1:])
        account = site.finish(command, 120)
    parts = [worker.requests for worker in account.workers]
    return Finding(
        text=f"{early:,} requests before the other two came; parts of {min(parts):,} to {max(parts):,}",
        is_met=early == 0 and len(parts) == len(workers),
    )


def _measure_missing(checkout: Checkout, folder: Path) -> Finding:
    requests, within_s = 2_000, 4.0
    flags = ("--start-within", f"{within_s}s") if checkout.has("run", "--start-within") else ()
    with open_site(checkout, folder, Behaviour(indices=requests, delay="100ms")) as site:
        site.stack.start_workers("worker-1")
        began = time.monotonic()
        command = site.start("run", requests, 100, "--workers", "2", *flags)
        site.target.wait_for_answers(1)
        waited_s = time.monotonic() - began
        site.finish(command, 120)
    return Finding(
        text=f"it began after {waited_s:.1f} s of {within_s:.0f} s",
        is_met=within_s - 1 <= waited_s <= within_s + 4,
    )


def _measure_cancel(checkout: Checkout, folder: Path) -> Finding:
    flags = ("--now",) if checkout.has("cancel", "--now") else ()
    with open_site(checkout, folder, Behaviour(indices=1_000, rare_share=1.0)) as site:
        site.stack.start_workers("worker-1")
        command = site.start("run", 1_000, 100, "--timeout", "40s")
        run = site.stack.wait_for_run("run")
        while not site.target.read_last().received:
            time.sleep(0.1)
        began = time.monotonic()
        checkout.call("cancel", run, *flags, *site.stack.where)
        try:
            account = command.wait(60)
        except BenchmarkError as error:
            return Finding(text=str(error), is_met=False)
        took_s = time.monotonic() - began
    return Finding(
        text=f"{account.state} after {took_s:.1f} s", is_met=account.state == "cancelled" and took_s <= _NOW_S
    )


def _measure_short_series(checkout: Checkout, folder: Path) -> Finding:
    requests = 2_000
    with open_site(checkout, folder, Behaviour(indices=requests, delay="20ms")) as site:
        site.stack.start_workers("worker-1")
        account = site.finish(site.start("run", requests, 100), 60)
        summed = checkout.sum_series(account.run, site.stack.where, folder)
    return Finding(text=f"{summed:,} of {account.accounted:,}", is_met=summed == account.accounted)


def _measure_series_with_kills(checkout: Checkout, folder: Path) -> Finding:
    requests = 80_000
    with open_site(checkout, folder, Behaviour(indices=requests, delay="5ms..50ms")) as site:
        site.stack.start_workers("worker-1", "worker-2")
        command = site.start("run", requests, 50, "--workers", "2")
        for number in range(8):
            while site.target.read_last().distinct < requests * (number + 1) // 10:
                time.sleep(0.05)
            site.stack.kill("worker-1")
            site.stack.start_workers("worker-1")
        site.stack.kill("coordinator")
        site.stack.start_coordinator()
        account = site.finish(command, 600)
        summed = checkout.sum_series(account.run, site.stack.where, folder)
    return Finding(text=f"{summed:,} of {account.accounted:,}", is_met=summed == account.accounted)


COMMAND_CASES = {
    "late-workers": LeaseCase(
        text="3 workers are asked for; one is there, the others come after 5 s",
        goal="no request before all are there, and all take part",
        measure=_measure_late_workers,
    ),
    "missing-worker": LeaseCase(
        text="2 workers are asked for within 4 s, and only one ever comes",
        goal="the run begins with it after 4 s",
        measure=_measure_missing,
    ),
    "cancel-now": LeaseCase(
        text="`oku cancel --now` while 100 requests wait for answers that never come, timeout 40 s",
        goal="cancelled within 5 s",
        measure=_measure_cancel,
    ),
    "short-series": LeaseCase(
        text="the seconds of a run of 2,000 at thousands a second",
        goal="they sum to the account",
        measure=_measure_short_series,
    ),
    "series": LeaseCase(
        text="the seconds of a run of 80,000 in which eight workers and the coordinator are killed",
        goal="they sum to the account",
        measure=_measure_series_with_kills,
    ),
}
